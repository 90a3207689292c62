"""The messages between processes of the launcher and of the training library, defined once for both halves.

They are frozen dataclasses, and travel as JSON objects, one a line. The package imports the standard library
alone.

==============  ==================================================  ==========================================
`messages`      launcher and workers: a TCP connection for each     `edt_launch.launcher.control`,
                worker                                              `edt_hvd.world.control`
`wmla`          launcher and the driver of a WMLA job: a socket     `edt_launch.adapters.wmla.running.driver`,
                that the driver inherits                            `edt_hvd.wmla.launching`
`forking`       agent and warm server: a socket for each worker     `edt_launch.agent.warm.server`,
                                                                    `edt_hvd.warm.server`
`codec`         lines of bounded size for the messages of a channel
`records`       frozen classes as JSON objects, with checks made from their types
==============  ==================================================  ==========================================
"""
