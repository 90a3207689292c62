"""Jobs under Horovod's own `horovodrun --host-discovery-script`, started by `edt-launch --horovodrun`."""
