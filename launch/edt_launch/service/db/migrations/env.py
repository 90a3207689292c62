"""Alembic's entry: migrates over the connection that `db.migrate` has opened."""

from alembic import context

from edt_launch.service.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
