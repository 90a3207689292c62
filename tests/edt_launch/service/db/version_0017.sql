-- A database of version 0017: the first that is migrated, as the service of then made it.
CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE allocations (
  number INTEGER NOT NULL,
  time FLOAT NOT NULL,
  job VARCHAR(16) NOT NULL,
  owner VARCHAR(64) NOT NULL,
  "before" INTEGER NOT NULL,
  "after" INTEGER NOT NULL,
  devices JSON NOT NULL,
  reason TEXT NOT NULL, leaving JSON DEFAULT '[]' NOT NULL, lost INTEGER DEFAULT '0' NOT NULL,
  CONSTRAINT pk_allocations PRIMARY KEY (number)
);
CREATE INDEX ix_allocations_job ON allocations (job);
CREATE INDEX ix_allocations_time ON allocations (time);
CREATE TABLE hosts (
  name VARCHAR(255) NOT NULL,
  devices JSON NOT NULL,
  is_up BOOLEAN NOT NULL,
  is_draining BOOLEAN NOT NULL,
  source VARCHAR(32) NOT NULL,
  reason TEXT NOT NULL,
  changed FLOAT NOT NULL,
  CONSTRAINT pk_hosts PRIMARY KEY (name)
);
CREATE TABLE jobs (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  id VARCHAR(16) NOT NULL,
  owner VARCHAR(64) NOT NULL,
  name VARCHAR(128) NOT NULL,
  command JSON NOT NULL,
  directory TEXT NOT NULL,
  min INTEGER NOT NULL,
  max INTEGER NOT NULL,
  allowed JSON,
  priority INTEGER NOT NULL,
  weight FLOAT NOT NULL,
  environment JSON NOT NULL,
  checkpoint_interval FLOAT,
  max_restarts INTEGER,
  wanted VARCHAR(16) NOT NULL,
  idempotency_key VARCHAR(128),
  fingerprint VARCHAR(64) NOT NULL,
  state VARCHAR(16) NOT NULL,
  reason TEXT NOT NULL,
  why JSON,
  exit_code INTEGER,
  failure TEXT,
  submitted FLOAT NOT NULL,
  started FLOAT,
  ended FLOAT,
  waiting_since FLOAT,
  running_since FLOAT,
  resized FLOAT,
  size INTEGER NOT NULL,
  target INTEGER NOT NULL,
  share FLOAT,
  generation BIGINT NOT NULL,
  held JSON NOT NULL,
  leaving JSON NOT NULL,
  launcher_pid INTEGER,
  launcher_started FLOAT,
  restarts INTEGER NOT NULL,
  resizes INTEGER NOT NULL,
  step BIGINT,
  total_steps BIGINT,
  loss FLOAT,
  throughput FLOAT,
  service FLOAT NOT NULL,
  entitlement FLOAT NOT NULL,
  usage_at FLOAT NOT NULL,
  resize_cost FLOAT NOT NULL,
  speedup JSON NOT NULL,
  notes JSON NOT NULL, framework VARCHAR(16), data_dir TEXT, losses INTEGER DEFAULT '0' NOT NULL, code_digest VARCHAR(64) DEFAULT '' NOT NULL, start_cost FLOAT DEFAULT '5.0' NOT NULL, attained FLOAT DEFAULT '0.0' NOT NULL, restartable BOOLEAN DEFAULT 0 NOT NULL, preemptible BOOLEAN DEFAULT 1 NOT NULL, may_lose BOOLEAN DEFAULT 0 NOT NULL, can_save BOOLEAN DEFAULT 0 NOT NULL, grace FLOAT DEFAULT '30.0' NOT NULL, warm_start BOOLEAN DEFAULT 1 NOT NULL, time_limit FLOAT DEFAULT '0.0' NOT NULL, ran FLOAT DEFAULT '0.0' NOT NULL, "begin" FLOAT DEFAULT '0.0' NOT NULL, "after" JSON DEFAULT '[]' NOT NULL, array_id VARCHAR(64) DEFAULT '' NOT NULL, array_index INTEGER, array_limit INTEGER,
  CONSTRAINT uq_jobs_id UNIQUE (id),
  CONSTRAINT uq_jobs_owner_idempotency_key UNIQUE (owner, idempotency_key)
);
CREATE INDEX ix_jobs_ended ON jobs (ended);
CREATE INDEX ix_jobs_state_number ON jobs (state, number);
CREATE TABLE memory (
  "key" VARCHAR(64) NOT NULL,
  value JSON NOT NULL,
  CONSTRAINT pk_memory PRIMARY KEY ("key")
);
CREATE TABLE shares (
  name VARCHAR(64) NOT NULL,
  parent VARCHAR(64),
  weight FLOAT NOT NULL,
  guarantee FLOAT NOT NULL,
  "limit" FLOAT,
  lends BOOLEAN NOT NULL,
  policy VARCHAR(16) NOT NULL,
  half_life FLOAT NOT NULL,
  service FLOAT NOT NULL,
  entitlement FLOAT NOT NULL,
  usage_at FLOAT NOT NULL,
  CONSTRAINT pk_shares PRIMARY KEY (name)
);
CREATE TABLE users (
  name VARCHAR(64) NOT NULL,
  is_admin BOOLEAN NOT NULL,
  created FLOAT NOT NULL, password TEXT,
  CONSTRAINT pk_users PRIMARY KEY (name)
);
CREATE TABLE tokens (
  id VARCHAR(16) NOT NULL,
  hash VARCHAR(64) NOT NULL,
  user VARCHAR(64) NOT NULL,
  name VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  expires FLOAT,
  revoked FLOAT, is_session BOOLEAN DEFAULT 0 NOT NULL, parent VARCHAR(16), idle_until FLOAT, is_once BOOLEAN DEFAULT 0 NOT NULL, scope VARCHAR(16) DEFAULT 'all' NOT NULL, used FLOAT,
  CONSTRAINT pk_tokens PRIMARY KEY (id),
  CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE,
  CONSTRAINT uq_tokens_hash UNIQUE (hash)
);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE TABLE transitions (
  number INTEGER NOT NULL,
  time FLOAT NOT NULL,
  job VARCHAR(16) NOT NULL,
  "before" VARCHAR(16),
  "after" VARCHAR(16) NOT NULL,
  reason TEXT NOT NULL,
  CONSTRAINT pk_transitions PRIMARY KEY (number),
  CONSTRAINT fk_transitions_job FOREIGN KEY(job) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE INDEX ix_transitions_job ON transitions (job);
CREATE TABLE execs (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  id VARCHAR(128),
  job VARCHAR(16),
  driver VARCHAR(64),
  app VARCHAR(128),
  "group" VARCHAR(128),
  args TEXT NOT NULL,
  CONSTRAINT fk_execs_job FOREIGN KEY(job) REFERENCES jobs (id) ON DELETE CASCADE,
  CONSTRAINT uq_execs_id UNIQUE (id),
  CONSTRAINT uq_execs_job UNIQUE (job),
  CONSTRAINT uq_execs_driver UNIQUE (driver)
);
CREATE INDEX ix_execs_app ON execs (app);
CREATE INDEX ix_execs_group ON execs ("group");
CREATE TABLE searches (
  number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  id VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  owner VARCHAR(64) NOT NULL,
  definition JSON NOT NULL,
  file_name VARCHAR(255) NOT NULL,
  seed BIGINT NOT NULL,
  created FLOAT NOT NULL,
  wanted VARCHAR(16) NOT NULL,
  state VARCHAR(16) NOT NULL,
  reason TEXT NOT NULL,
  started FLOAT,
  ended FLOAT, kind VARCHAR(16) DEFAULT 'wmla' NOT NULL, template JSON DEFAULT '{}' NOT NULL, total INTEGER,
  CONSTRAINT uq_searches_id UNIQUE (id),
  CONSTRAINT uq_searches_name UNIQUE (name)
);
CREATE INDEX ix_searches_owner ON searches (owner);
CREATE INDEX ix_searches_state ON searches (state);
CREATE TABLE trials (
  search VARCHAR(16) NOT NULL,
  number INTEGER NOT NULL,
  point JSON NOT NULL,
  parameters JSON NOT NULL,
  budget BIGINT NOT NULL,
  created FLOAT NOT NULL,
  exec VARCHAR(128),
  driver VARCHAR(128),
  job VARCHAR(16),
  state VARCHAR(16) NOT NULL,
  metric FLOAT,
  reason TEXT NOT NULL,
  started FLOAT,
  ended FLOAT,
  CONSTRAINT pk_trials PRIMARY KEY (search, number),
  CONSTRAINT fk_trials_search FOREIGN KEY(search) REFERENCES searches (id) ON DELETE CASCADE
);
CREATE INDEX ix_trials_job ON trials (job);
CREATE INDEX ix_tokens_parent ON tokens (parent);
CREATE TABLE audit (
  time FLOAT NOT NULL,
  user VARCHAR(64) NOT NULL,
  method VARCHAR(16) NOT NULL,
  path VARCHAR(255) NOT NULL,
  number INTEGER NOT NULL,
  CONSTRAINT pk_audit PRIMARY KEY (number)
);
CREATE INDEX ix_audit_user ON audit (user);
CREATE TABLE projects (
  id VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  description TEXT NOT NULL,
  owner VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  changed FLOAT NOT NULL,
  changed_by VARCHAR(64) NOT NULL,
  version INTEGER NOT NULL,
  number INTEGER NOT NULL,
  CONSTRAINT pk_projects PRIMARY KEY (number),
  CONSTRAINT uq_projects_id UNIQUE (id),
  CONSTRAINT uq_projects_name UNIQUE (name)
);
CREATE TABLE members (
  project VARCHAR(16) NOT NULL,
  user VARCHAR(64) NOT NULL,
  role VARCHAR(16) NOT NULL,
  CONSTRAINT pk_members PRIMARY KEY (project, user),
  CONSTRAINT fk_members_project FOREIGN KEY(project) REFERENCES projects (id) ON DELETE CASCADE,
  CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
CREATE TABLE definitions (
  id VARCHAR(16) NOT NULL,
  project VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  description TEXT NOT NULL,
  framework VARCHAR(16) NOT NULL,
  command JSON NOT NULL,
  owner VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  changed FLOAT NOT NULL,
  changed_by VARCHAR(64) NOT NULL,
  version INTEGER NOT NULL,
  code INTEGER NOT NULL,
  number INTEGER NOT NULL,
  CONSTRAINT pk_definitions PRIMARY KEY (number),
  CONSTRAINT fk_definitions_project FOREIGN KEY(project) REFERENCES projects (id),
  CONSTRAINT uq_definitions_id UNIQUE (id),
  CONSTRAINT uq_definitions_project_name UNIQUE (project, name)
);
CREATE TABLE codes (
  definition VARCHAR(16) NOT NULL,
  place INTEGER NOT NULL,
  digest VARCHAR(64) NOT NULL,
  name VARCHAR(128) NOT NULL,
  size BIGINT NOT NULL,
  owner VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  CONSTRAINT pk_codes PRIMARY KEY (definition, place),
  CONSTRAINT fk_codes_definition FOREIGN KEY(definition) REFERENCES definitions (id) ON DELETE CASCADE,
  CONSTRAINT uq_codes_definition_digest UNIQUE (definition, digest)
);
CREATE TABLE experiments (
  id VARCHAR(16) NOT NULL,
  project VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  description TEXT NOT NULL,
  source TEXT NOT NULL,
  command JSON NOT NULL,
  metric VARCHAR(128) NOT NULL,
  objective VARCHAR(16) NOT NULL,
  owner VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  changed FLOAT NOT NULL,
  changed_by VARCHAR(64) NOT NULL,
  version INTEGER NOT NULL,
  number INTEGER NOT NULL,
  CONSTRAINT pk_experiments PRIMARY KEY (number),
  CONSTRAINT fk_experiments_project FOREIGN KEY(project) REFERENCES projects (id),
  CONSTRAINT uq_experiments_id UNIQUE (id),
  CONSTRAINT uq_experiments_project_name UNIQUE (project, name)
);
CREATE TABLE trainings (
  experiment VARCHAR(16) NOT NULL,
  place INTEGER NOT NULL,
  definition VARCHAR(16) NOT NULL,
  distribution VARCHAR(16) NOT NULL,
  devices INTEGER NOT NULL,
  least INTEGER NOT NULL,
  most INTEGER NOT NULL,
  CONSTRAINT pk_trainings PRIMARY KEY (experiment, place),
  CONSTRAINT fk_trainings_experiment FOREIGN KEY(experiment) REFERENCES experiments (id) ON DELETE CASCADE,
  CONSTRAINT fk_trainings_definition FOREIGN KEY(definition) REFERENCES definitions (id)
);
CREATE TABLE runs (
  id VARCHAR(16) NOT NULL,
  experiment VARCHAR(16) NOT NULL,
  definition VARCHAR(16) NOT NULL,
  name VARCHAR(128) NOT NULL,
  code INTEGER NOT NULL,
  digest VARCHAR(64) NOT NULL,
  job VARCHAR(16) NOT NULL,
  owner VARCHAR(64) NOT NULL,
  created FLOAT NOT NULL,
  spec JSON NOT NULL,
  outcome JSON,
  number INTEGER NOT NULL,
  CONSTRAINT pk_runs PRIMARY KEY (number),
  CONSTRAINT fk_runs_experiment FOREIGN KEY(experiment) REFERENCES experiments (id) ON DELETE CASCADE,
  CONSTRAINT uq_runs_id UNIQUE (id),
  CONSTRAINT uq_runs_job UNIQUE (job)
);
CREATE INDEX ix_projects_owner ON projects (owner);
CREATE INDEX ix_definitions_owner ON definitions (owner);
CREATE INDEX ix_codes_owner ON codes (owner);
CREATE INDEX ix_experiments_owner ON experiments (owner);
CREATE INDEX ix_runs_owner ON runs (owner);
CREATE INDEX ix_members_user ON members (user);
CREATE INDEX ix_trainings_definition ON trainings (definition);
CREATE INDEX ix_runs_experiment ON runs (experiment);
INSERT INTO alembic_version ("version_num") VALUES ('0017');
INSERT INTO jobs ("number", "id", "owner", "name", "command", "directory", "min", "max", "allowed", "priority", "weight", "environment", "checkpoint_interval", "max_restarts", "wanted", "idempotency_key", "fingerprint", "state", "reason", "why", "exit_code", "failure", "submitted", "started", "ended", "waiting_since", "running_since", "resized", "size", "target", "share", "generation", "held", "leaving", "launcher_pid", "launcher_started", "restarts", "resizes", "step", "total_steps", "loss", "throughput", "service", "entitlement", "usage_at", "resize_cost", "speedup", "notes", "framework", "data_dir", "losses", "code_digest", "start_cost", "attained", "restartable", "preemptible", "may_lose", "can_save", "grace", "warm_start", "time_limit", "ran", "begin", "after", "array_id", "array_index", "array_limit") VALUES (1, 'jraaaaaaa', 'ann', 'run 0', '["python", "train.py", "--rate", "0"]', '.', 1, 4, NULL, 0, 1.0, '{}', NULL, NULL, 'run', NULL, '', 'running', 'for the benchmark', NULL, NULL, NULL, 1795854720.2752573, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, '[]', '[]', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0.0, 0.0, 0.0, 5.0, '[]', '{}', NULL, NULL, 0, '', 5.0, 0.0, 0, 1, 0, 0, 30.0, 1, 0.0, 0.0, 0.0, '[]', '', NULL, NULL);
INSERT INTO transitions ("number", "time", "job", "before", "after", "reason") VALUES (1, 1795854720.2752573, 'jraaaaaaa', NULL, 'queued', 'submitted');
INSERT INTO projects ("id", "name", "description", "owner", "created", "changed", "changed_by", "version", "number") VALUES ('paaaaaaaa', 'digits', '', 'ann', 1795863720.2752573, 1795863720.2752573, 'ann', 1, 1);
INSERT INTO definitions ("id", "project", "name", "description", "framework", "command", "owner", "created", "changed", "changed_by", "version", "code", "number") VALUES ('daaaaaaaa', 'paaaaaaaa', 'net', '', 'Horovod', '["python", "train.py"]', 'ann', 1795863720.2752573, 1795863720.2752573, 'ann', 1, 0, 1);
INSERT INTO experiments ("id", "project", "name", "description", "source", "command", "metric", "objective", "owner", "created", "changed", "changed_by", "version", "number") VALUES ('xaaaaaaaa', 'paaaaaaaa', 'experiment 0', '', '', '[]', '', '', 'ann', 1795863720.2752573, 1795863720.2752573, 'ann', 1, 1);
INSERT INTO trainings ("experiment", "place", "definition", "distribution", "devices", "least", "most") VALUES ('xaaaaaaaa', 0, 'daaaaaaaa', 'Elastic', 1, 1, 4);
INSERT INTO runs ("id", "experiment", "definition", "name", "code", "digest", "job", "owner", "created", "spec", "outcome", "number") VALUES ('rraaaaaaa', 'xaaaaaaaa', 'daaaaaaaa', 'net', 0, '', 'jraaaaaaa', 'ann', 1795863720.2752573, '{"command": ["python", "train.py", "--rate", "0"], "min": 1, "max": 4, "environment": {}}', NULL, 1);
INSERT INTO searches ("number", "id", "name", "owner", "definition", "file_name", "seed", "created", "wanted", "state", "reason", "started", "ended", "kind", "template", "total") VALUES (1, 'haaaaaaaa', 'rates', 'ann', '{"metric": "loss", "objective": "minimize", "algorithm": "random", "parameters": {"rate": {"type": "float", "min": 0, "max": 1}, "decay": {"type": "float", "min": 0, "max": 1}, "momentum": {"type": "float", "min": 0, "max": 1}, "dropout": {"type": "float", "min": 0, "max": 1}}}', '', 7, 1795863726.487549, 'run', 'queued', '', NULL, NULL, '', '{"command": ["python", "train.py"], "min": 1, "max": 1}', 1000);
INSERT INTO trials ("search", "number", "point", "parameters", "budget", "created", "exec", "driver", "job", "state", "metric", "reason", "started", "ended") VALUES ('haaaaaaaa', 0, '{}', '{"rate": 0.0, "decay": 0.0, "momentum": 0.0, "dropout": 0.0}', 0, 1795863726.487549, NULL, NULL, NULL, 'succeeded', 0.0, '', NULL, NULL);
