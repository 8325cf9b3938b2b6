/*
 * The schema: numbered migrations. A migration that has been released is never
 * edited; a change is a new one behind it. Comments stand inside the CREATE
 * statements because SQLite keeps them there: `.schema` explains itself.
 */
#include <stddef.h>

#include "store/internal.h"

/* Facts are written once. A trigger says so even to a person with sqlite3. */
#define FROZEN(table)                                                                              \
	"CREATE TRIGGER " table "_is_written_once BEFORE UPDATE ON " table " BEGIN\n"              \
	"  SELECT RAISE(ABORT, '" table ": facts are written once and never updated');\n"          \
	"END;\n"

#define PROVENANCE_CHECK                                                                           \
	"CHECK (provenance IN ('unavailable','measured','simulated','modelled','declared'))"

static const char migration_1[] =
	"CREATE TABLE run (\n"
	"  -- A row is one recording, written when it began. Its end is in run_end.\n"
	"  run_id INTEGER PRIMARY KEY,\n"
	"  tag TEXT,                      -- a name given by a person; the newest run that has it is meant\n"
	"  model TEXT NOT NULL,           -- as typed\n"
	"  model_name TEXT NOT NULL,      -- short\n"
	"  model_sha256 TEXT,             -- NULL for built-in models\n"
	"  command TEXT NOT NULL,\n"
	"  ridge_version TEXT NOT NULL,\n"
	"  started_unix_ns INTEGER NOT NULL,\n"
	"  threads INTEGER NOT NULL CHECK (threads BETWEEN 1 AND 65536),\n"
	"  warmup_iterations INTEGER CHECK (warmup_iterations >= 0), -- asked for; NULL: until steady\n"
	"  iterations INTEGER CHECK (iterations >= 0),   -- asked for; NULL: by duration\n"
	"  duration_ns INTEGER CHECK (duration_ns >= 0), -- asked for; NULL: by iterations\n"
	"  seed INTEGER NOT NULL,\n"
	"  owner_pid INTEGER NOT NULL,    -- the process that records, told apart from a later one\n"
	"  owner_start_ticks INTEGER NOT NULL, -- with the same pid by its start, clock ticks since boot\n"
	"  owner_boot_id TEXT NOT NULL    -- and by the boot; '' unknown\n"
	") STRICT;\n"
	"CREATE INDEX run_by_tag ON run (tag) WHERE tag IS NOT NULL;\n"

	"CREATE TABLE run_end (\n"
	"  -- A row is the end of one run with its summary. A run without one is still\n"
	"  -- being recorded, or its process vanished.\n"
	"  run_id INTEGER PRIMARY KEY REFERENCES run (run_id),\n"
	"  status TEXT NOT NULL CHECK (status IN ('complete','interrupted','failed','killed')),\n"
	"  message TEXT,\n"
	"  ended_unix_ns INTEGER NOT NULL,  -- for 'killed': when that was noticed\n"
	"  p50_ns REAL,                     -- median of the latency samples; NULL: there are none\n"
	"  n_iterations INTEGER NOT NULL CHECK (n_iterations >= 0) -- how many p50_ns is over\n"
	") STRICT;\n"

	"CREATE TABLE fact (\n"
	"  -- A row is one figure about a run with where it comes from.\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  key TEXT NOT NULL,             -- dotted, ends in its unit: 'process.peak_rss_bytes'\n"
	"  value ANY CHECK (typeof(value) IN ('text','integer','real','null')), -- NULL: unavailable\n"
	"  reason TEXT,                   -- why it is unavailable\n"
	"  unit TEXT NOT NULL,            -- '' none\n"
	"  provenance TEXT NOT NULL " PROVENANCE_CHECK ",\n"
	"  method TEXT NOT NULL,          -- how it was got\n"
	"  PRIMARY KEY (run_id, key),\n"
	"  CHECK ((value IS NULL) = (reason IS NOT NULL))\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE ceiling (\n"
	"  -- A row is one ceiling of the machine: what arithmetic or memory can reach.\n"
	"  ceiling_id INTEGER PRIMARY KEY,\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  kind TEXT NOT NULL CHECK (kind IN ('compute','bandwidth')),\n"
	"  level TEXT NOT NULL,           -- 'peak' for compute; 'L1', 'L2', 'L3', 'DRAM'\n"
	"  dtype TEXT NOT NULL,\n"
	"  isa TEXT NOT NULL,\n"
	"  threads INTEGER NOT NULL CHECK (threads BETWEEN 1 AND 65536),\n"
	"  value REAL CHECK (value > 0),  -- best, in `unit`; NULL: could not be had, see method\n"
	"  low REAL, high REAL,           -- the spread seen\n"
	"  samples INTEGER NOT NULL CHECK (samples >= 0),\n"
	"  unit TEXT NOT NULL,            -- 'flop/s', 'byte/s'\n"
	"  measured_when TEXT NOT NULL,   -- 'before' or 'after' the timing pass\n"
	"  method TEXT NOT NULL,\n"
	"  working_set_bytes INTEGER CHECK (working_set_bytes >= 0),\n"
	"  provenance TEXT NOT NULL " PROVENANCE_CHECK "\n"
	") STRICT;\n"
	"CREATE INDEX ceiling_by_run ON ceiling (run_id);\n"

	"CREATE TABLE tensor (\n"
	"  -- A row is one value of the graph and where the plan put it.\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  tensor INTEGER NOT NULL CHECK (tensor >= 0), -- 0.. without gaps\n"
	"  name TEXT NOT NULL,\n"
	"  dtype TEXT NOT NULL,\n"
	"  shape TEXT NOT NULL,           -- '1x64x56x56'; '' a scalar\n"
	"  size_bytes INTEGER CHECK (size_bytes >= 0),\n"
	"  place TEXT NOT NULL CHECK (place IN ('arena','const','input','unused')),\n"
	"  offset_bytes INTEGER CHECK (offset_bytes >= 0), -- in the arena; NULL elsewhere\n"
	"  alias_of INTEGER CHECK (alias_of >= 0), -- the tensor whose memory this is\n"
	"  first_step INTEGER CHECK (first_step >= 0),\n"
	"  last_step INTEGER CHECK (last_step >= 0),\n"
	"  is_input INTEGER NOT NULL CHECK (is_input IN (0,1)),\n"
	"  is_output INTEGER NOT NULL CHECK (is_output IN (0,1)),\n"
	"  is_param INTEGER NOT NULL CHECK (is_param IN (0,1)), -- counts as a parameter\n"
	"  PRIMARY KEY (run_id, tensor)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE step (\n"
	"  -- A row is one step of the plan: a node and the kernel that runs it. Counts\n"
	"  -- are of one inference; NULL is unknown, never 0.\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  step INTEGER NOT NULL CHECK (step >= 0), -- execution order, 0.. without gaps\n"
	"  name TEXT NOT NULL,\n"
	"  op_type TEXT NOT NULL,\n"
	"  domain TEXT NOT NULL,          -- '' is the standard one\n"
	"  op_version INTEGER NOT NULL,\n"
	"  op_kind TEXT NOT NULL,         -- 'gemm', 'conv', 'elementwise', ...\n"
	"  kernel TEXT NOT NULL,\n"
	"  kernel_reason TEXT NOT NULL,\n"
	"  dtype TEXT NOT NULL,           -- of output 0\n"
	"  shape TEXT NOT NULL,           -- of output 0\n"
	"  flops INTEGER CHECK (flops >= 0),     -- useful; a multiply-add is 2\n"
	"  iops INTEGER CHECK (iops >= 0),       -- the same for integers\n"
	"  sfu INTEGER CHECK (sfu >= 0),         -- exp, tanh, erf, div, sqrt\n"
	"  executed_flops INTEGER CHECK (executed_flops >= 0), -- as the kernel says\n"
	"  read_bytes INTEGER CHECK (read_bytes >= 0),   -- compulsory\n"
	"  write_bytes INTEGER CHECK (write_bytes >= 0), -- compulsory\n"
	"  weight_bytes INTEGER CHECK (weight_bytes >= 0),\n"
	"  params INTEGER CHECK (params >= 0),   -- elements of parameters that it is the first to use\n"
	"  scratch_bytes INTEGER CHECK (scratch_bytes >= 0),\n"
	"  prepared_bytes INTEGER CHECK (prepared_bytes >= 0),\n"
	"  gemm_m INTEGER CHECK (gemm_m >= 0),   -- the equivalent GEMM; NULL: not one\n"
	"  gemm_n INTEGER CHECK (gemm_n >= 0),\n"
	"  gemm_k INTEGER CHECK (gemm_k >= 0),\n"
	"  special_form INTEGER NOT NULL CHECK (special_form IN (0,1)), -- for its degenerate case\n"
	"  PRIMARY KEY (run_id, step)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE step_io (\n"
	"  -- A row is one argument of a step: a tensor that it reads or writes.\n"
	"  run_id INTEGER NOT NULL,\n"
	"  step INTEGER NOT NULL,\n"
	"  is_output INTEGER NOT NULL CHECK (is_output IN (0,1)),\n"
	"  slot INTEGER NOT NULL CHECK (slot >= 0),\n"
	"  tensor INTEGER NOT NULL,\n"
	"  PRIMARY KEY (run_id, step, is_output, slot),\n"
	"  FOREIGN KEY (run_id, step) REFERENCES step (run_id, step),\n"
	"  FOREIGN KEY (run_id, tensor) REFERENCES tensor (run_id, tensor)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE data_edge (\n"
	"  -- A row is a true data dependency: to_step reads what from_step wrote.\n"
	"  run_id INTEGER NOT NULL,\n"
	"  from_step INTEGER NOT NULL,\n"
	"  to_step INTEGER NOT NULL,\n"
	"  tensor INTEGER NOT NULL,\n"
	"  PRIMARY KEY (run_id, from_step, to_step, tensor),\n"
	"  CHECK (from_step < to_step),\n"
	"  FOREIGN KEY (run_id, from_step) REFERENCES step (run_id, step),\n"
	"  FOREIGN KEY (run_id, to_step) REFERENCES step (run_id, step),\n"
	"  FOREIGN KEY (run_id, tensor) REFERENCES tensor (run_id, tensor)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE phase (\n"
	"  -- A row is one phase of a recording: reading, planning, a pass, ...\n"
	"  phase_id INTEGER PRIMARY KEY,\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  name TEXT NOT NULL,\n"
	"  start_ns INTEGER NOT NULL CHECK (start_ns >= 0), -- CLOCK_MONOTONIC_RAW\n"
	"  end_ns INTEGER NOT NULL CHECK (end_ns >= start_ns)\n"
	") STRICT;\n"
	"CREATE INDEX phase_by_run ON phase (run_id);\n"

	"CREATE TABLE iteration (\n"
	"  -- A row is one inference. Its spans were written in the same transaction.\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  iteration INTEGER NOT NULL CHECK (iteration >= 0), -- 0.. without gaps, over all passes\n"
	"  pass TEXT NOT NULL CHECK (pass IN ('first','warmup','timing')),\n"
	"  hook_on INTEGER NOT NULL CHECK (hook_on IN (0,1)), -- whether spans were recorded\n"
	"  start_ns INTEGER NOT NULL CHECK (start_ns >= 0),\n"
	"  end_ns INTEGER NOT NULL CHECK (end_ns >= start_ns),\n"
	"  PRIMARY KEY (run_id, iteration)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE span (\n"
	"  -- A row is one stretch of work: a step as a whole, or one lane's share of it.\n"
	"  run_id INTEGER NOT NULL,\n"
	"  iteration INTEGER NOT NULL,\n"
	"  seq INTEGER NOT NULL CHECK (seq >= 0), -- order of recording\n"
	"  step INTEGER NOT NULL,\n"
	"  lane INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 65535),\n"
	"  whole INTEGER NOT NULL CHECK (whole IN (0,1)), -- 1: the step; 0: one lane's share\n"
	"  start_ns INTEGER NOT NULL CHECK (start_ns >= 0),\n"
	"  end_ns INTEGER NOT NULL CHECK (end_ns >= start_ns),\n"
	"  PRIMARY KEY (run_id, iteration, seq),\n"
	"  FOREIGN KEY (run_id, iteration) REFERENCES iteration (run_id, iteration),\n"
	"  FOREIGN KEY (run_id, step) REFERENCES step (run_id, step)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE note (\n"
	"  -- A row is one thing that planning did or warned of.\n"
	"  note_id INTEGER PRIMARY KEY,\n"
	"  run_id INTEGER NOT NULL REFERENCES run (run_id),\n"
	"  kind TEXT NOT NULL,            -- 'view', 'folded', 'dead', 'bound-input', 'warning'\n"
	"  subject TEXT NOT NULL,         -- name of a node or an input\n"
	"  text TEXT NOT NULL\n"
	") STRICT;\n"
	"CREATE INDEX note_by_run ON note (run_id);\n"

	FROZEN("run") FROZEN("run_end") FROZEN("fact") FROZEN("ceiling") FROZEN("tensor")
	FROZEN("step") FROZEN("step_io") FROZEN("data_edge") FROZEN("phase") FROZEN("iteration")
	FROZEN("span") FROZEN("note")

	"CREATE VIEW run_status AS\n"
	"  -- A row is one run with how it ended. 'recording': no end is written yet (it\n"
	"  -- runs, or its process vanished and nobody opened the database for writing since).\n"
	"  SELECT run.run_id, tag, model_name, threads, COALESCE(status, 'recording') AS status, message,\n"
	"         datetime(started_unix_ns / 1000000000, 'unixepoch') AS started_utc,\n"
	"         datetime(ended_unix_ns / 1000000000, 'unixepoch') AS ended_utc,\n"
	"         p50_ns, n_iterations, command\n"
	"  FROM run LEFT JOIN run_end USING (run_id);\n"

	"CREATE VIEW latency_sample AS\n"
	"  -- A row is one timed inference that counts as latency: those without the hook,\n"
	"  -- or, in a run that has none, those with it. rank 1 is the fastest of n.\n"
	"  WITH counted AS (SELECT run_id, MIN(hook_on) AS hook_on FROM iteration\n"
	"                   WHERE pass = 'timing' GROUP BY run_id)\n"
	"  SELECT run_id, iteration, hook_on, end_ns - start_ns AS duration_ns,\n"
	"         ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY end_ns - start_ns) AS rank,\n"
	"         COUNT(*) OVER (PARTITION BY run_id) AS n\n"
	"  FROM iteration JOIN counted USING (run_id, hook_on) WHERE pass = 'timing';\n"

	"CREATE VIEW latency AS\n"
	"  -- A row is the latency of one run over its n samples. A quantile q lies at rank\n"
	"  -- q * (n - 1) from 0, between two samples in proportion (Hyndman and Fan, type 7):\n"
	"  -- each sample weighs 1 minus its distance from there.\n"
	"  SELECT run_id, n, MIN(duration_ns) AS min_ns,\n"
	"         SUM(duration_ns * MAX(0.0, 1.0 - ABS(rank - 1 - 0.50 * (n - 1)))) AS p50_ns,\n"
	"         SUM(duration_ns * MAX(0.0, 1.0 - ABS(rank - 1 - 0.95 * (n - 1)))) AS p95_ns,\n"
	"         SUM(duration_ns * MAX(0.0, 1.0 - ABS(rank - 1 - 0.99 * (n - 1)))) AS p99_ns,\n"
	"         MAX(duration_ns) AS max_ns\n"
	"  FROM latency_sample GROUP BY run_id;\n"

	"CREATE VIEW op_time AS\n"
	"  -- A row is one step of one run: its median time over n timed inferences with the\n"
	"  -- hook on, and its share of the sum of all medians of the run.\n"
	"  WITH sample AS (\n"
	"    SELECT run_id, step, span.end_ns - span.start_ns AS duration_ns,\n"
	"           ROW_NUMBER() OVER (PARTITION BY run_id, step ORDER BY span.end_ns - span.start_ns) AS rank,\n"
	"           COUNT(*) OVER (PARTITION BY run_id, step) AS n\n"
	"    FROM span JOIN iteration USING (run_id, iteration)\n"
	"    WHERE whole = 1 AND pass = 'timing' AND hook_on = 1),\n"
	"  median AS (\n"
	"    SELECT run_id, step, n,\n"
	"           SUM(duration_ns * MAX(0.0, 1.0 - ABS(rank - 1 - 0.50 * (n - 1)))) AS time_ns\n"
	"    FROM sample GROUP BY run_id, step)\n"
	"  SELECT median.run_id, median.step, name, op_type, kernel, shape, time_ns, n,\n"
	"         100.0 * time_ns / SUM(time_ns) OVER (PARTITION BY median.run_id) AS share_percent,\n"
	"         flops / time_ns AS gflop_per_s, (read_bytes + write_bytes) / time_ns AS gbyte_per_s\n"
	"  FROM median JOIN step USING (run_id, step);\n";

/*
 * Tensors of dynamic steps have a place of their own. Only a CHECK is loosened,
 * which no stored row depends on, so the text of the table is changed in place
 * (sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema
 * Changes"): a table that others refer to cannot be dropped and made again
 * inside of a transaction.
 */
static const char migration_2[] =
	"PRAGMA writable_schema = ON;\n"
	"UPDATE sqlite_schema SET sql = replace(sql, '''unused'')),',\n"
	"  '''unused'',''dynamic'')), -- dynamic: in memory of its own, made while it ran')\n"
	"  WHERE type = 'table' AND name = 'tensor';\n"
	"PRAGMA writable_schema = RESET;\n";

/* NULL in older rows, and where a step has no scratch. */
static const char migration_3[] =
	"ALTER TABLE step ADD COLUMN scratch_offset_bytes INTEGER CHECK (scratch_offset_bytes >= 0); -- in the arena\n";

const char *const rg_store_migrations[] = { migration_1, migration_2, migration_3 };
const int rg_store_n_migrations = sizeof(rg_store_migrations) / sizeof(rg_store_migrations[0]);

const char *const rg_store_tables[] = {
	"run", "run_end", "fact", "ceiling", "tensor", "step", "step_io", "data_edge", "phase", "iteration",
	"span", "note", NULL,
};
