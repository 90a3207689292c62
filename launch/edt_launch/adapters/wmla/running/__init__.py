"""Running a program written for WMLA under `edt-launch`."""
