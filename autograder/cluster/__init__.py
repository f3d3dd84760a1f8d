"""Grading on a cluster: other machines hold the warm processes, this one writes what comes back."""
