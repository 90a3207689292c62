"""The messages between the launcher and the workers, defined once for both halves.

They travel over one TCP connection for each worker, as JSON objects, one a line. Its ends are
`edt_launch.launcher.control` and `edt_hvd.world.control`. It imports the standard library alone.

==============  ========================================================================
`messages`      a frozen class for each message, `encode` and `decode`
`records`       frozen classes as JSON objects, with checks made from their types
==============  ========================================================================
"""
