"""The `edt-launch` processes of jobs: started, asked, and cleaned up after."""
