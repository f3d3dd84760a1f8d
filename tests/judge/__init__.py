"""Tests of grading: one submission, one result."""
