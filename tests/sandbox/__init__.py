"""The sandbox of students' processes, tried from within and from without."""
