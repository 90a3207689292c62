"""The job service: `edt serve`.

Folders by feature:
    accounts     users, tokens, sessions, audit log
    jobs         jobs; `loop` decides which run, `forecast` says what a change would do
    experiments  projects, training definitions, experiments, runs, searches
    cluster      hosts, shares, timeline
    files        what jobs write, and archives
and what they share: `app` (start, settings, context), `http` (middleware, errors), `db` (engine, tables,
migrations), `web` (the pages' frame).

In a feature, `records` are the tables' rows, `store` reads and writes them, `service` has what REST and pages
both do, `schemas` the answers, `rest` and `pages` the routes, `pages/views` what templates show. For example:
    a job's new field  `jobs/records.py`, and a migration in `db/migrations/versions`. The loop may write
                       fields after `state`. To show it: `Job` or `JobForAll` in `jobs/schemas.py`.
    a new page         a module with a `router` in the feature's `pages`, listed in `web/app.py`
    who may do what    `job_of` in `app/context.py` for jobs, `project_for` in `experiments/projects.py` else
"""
