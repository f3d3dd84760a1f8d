"""Tests of the line between the processes, and of what crosses it."""
