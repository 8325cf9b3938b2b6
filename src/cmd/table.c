/*
 * The command table and the option table. Usage, --help, completion, the man
 * page and docs/commands.md are made from them; a new verb is one entry here
 * and one cmd-*.c.
 */
#include "cmd/verbs.h"

#define O(name) (UINT64_C(1) << RG_OPT_##name)

const struct rg_opt rg_opts[RG_OPT_COUNT] = {
	[RG_OPT_DB] = {RG_OPT_DB, "db", 0, "FILE", false,
		   "database (default: RIDGE_DB, else ridge.db in the working directory)"},
	[RG_OPT_THREADS] = {RG_OPT_THREADS, "threads", 0, "N", false,
			"worker threads (default: one per core that this process may use)"},
	[RG_OPT_ITERATIONS] = {RG_OPT_ITERATIONS, "iterations", 'n', "N", false, "timed iterations"},
	[RG_OPT_DURATION] = {RG_OPT_DURATION, "duration", 0, "TIME", false,
			 "time to keep iterating instead: 5s, 200ms, 2m"},
	[RG_OPT_WARMUP] = {RG_OPT_WARMUP, "warmup", 0, "N", false,
			   "iterations before the clock counts (default: until steady)"},
	[RG_OPT_SEED] = {RG_OPT_SEED, "seed", 0, "N", false, "seed of generated inputs (default 1)"},
	[RG_OPT_TAG] = {RG_OPT_TAG, "tag", 0, "NAME", false, "name for the run; RUN then accepts it"},
	[RG_OPT_FORMAT] = {RG_OPT_FORMAT, "format", 0, "FORMAT", false, "form of what goes to standard output"},
	[RG_OPT_QUIET] = {RG_OPT_QUIET, "quiet", 'q', NULL, false, "no progress, no summary; errors only"},
	[RG_OPT_INPUT] = {RG_OPT_INPUT, "input", 'i', "NAME=FILE.npy", true,
			  "value of a model input; of strings: a text file, one a line"},
	[RG_OPT_INPUT_RANGE] = {RG_OPT_INPUT_RANGE, "input-range", 0, "NAME=LO..HI", true,
				"range of a generated input"},
	[RG_OPT_SHAPE] = {RG_OPT_SHAPE, "shape", 0, "NAME=1x3x640x640", true, "shape of a model input"},
	[RG_OPT_DIM] = {RG_OPT_DIM, "dim", 0, "NAME=N", true, "value of a named dimension (batch=4)"},
	[RG_OPT_OUTPUT] = {RG_OPT_OUTPUT, "output", 'o', "FILE", false,
			   "where it goes: a model, or a picture: .svg, .png, .pdf, .gp (the script), - for the terminal"},
	[RG_OPT_OUTPUT_DIR] = {RG_OPT_OUTPUT_DIR, "output-dir", 0, "DIR", false,
			   "folder for one .npy file an output"},
	[RG_OPT_OP] = {RG_OPT_OP, "op", 0, "NAME", false,
		   "an operator, or an operator type for all of that type"},
	[RG_OPT_SPEEDUP] = {RG_OPT_SPEEDUP, "speedup", 0, "FACTOR", false,
			"how many times faster it becomes; inf removes it (default 2)"},
	[RG_OPT_KERNEL] = {RG_OPT_KERNEL, "kernel", 0, "OP=KERNEL", true,
			   "kernel to use for an operator or operator type"},
	[RG_OPT_WITHOUT_KERNEL] = {RG_OPT_WITHOUT_KERNEL, "without-kernel", 0, "NAME", true,
				   "do not choose kernels of this name, such as openblas"},
	[RG_OPT_ISA] = {RG_OPT_ISA, "isa", 0, "LEVEL", false,
			"use at most this instruction set: sse2, avx2, avx512, native"},
	[RG_OPT_TOP] = {RG_OPT_TOP, "top", 0, "N", false, "show the N longest operators only"},
	[RG_OPT_SIZE] = {RG_OPT_SIZE, "size", 0, "WxH", false,
			 "size of a picture: pixels, or columns and rows in the terminal"},
	[RG_OPT_QUICK] = {RG_OPT_QUICK, "quick", 0, NULL, false, "a shorter, rougher measurement"},
	[RG_OPT_ROUNDS] = {RG_OPT_ROUNDS, "rounds", 0, "N", false, "timed rounds (default 15, with --quick 7)"},
	[RG_OPT_OPTIMIZE] = {RG_OPT_OPTIMIZE, "optimize", 0, "LEVEL", false,
			     "rewrite the graph before it runs: 0 not at all, 1 standard operators only, 2 where "
			     "rounding may differ more, 3 fused operators too (default)"},
	[RG_OPT_WHY] = {RG_OPT_WHY, "why", 0, NULL, false,
			"also say why the plan took each kernel"},
	[RG_OPT_COMPILER] = {RG_OPT_COMPILER, "compiler", 0, NULL, false,
			     "say what each graph pass rewrote, and which steps stayed two and why"},
	[RG_OPT_STATIC] = {RG_OPT_STATIC, "static", 0, NULL, false,
			   "plan MODEL without running it: works with operators that cannot run"},
	[RG_OPT_CSV] = {RG_OPT_CSV, "csv", 0, "FILE", false, "buffers to place: id,lower,upper,size[,alignment]"},
	[RG_OPT_STRATEGY] = {RG_OPT_STRATEGY, "strategy", 0, "NAME", false,
			     "search, portfolio, greedy-lowest, greedy-lowest-back, greedy-size, greedy-size-best, greedy-birth or naive"},
	[RG_OPT_CAPACITY] = {RG_OPT_CAPACITY, "capacity", 0, "BYTES", false,
			     "size of the memory: 1048576, 512K, 1M, 2G (powers of 1024)"},
	[RG_OPT_TIME_LIMIT] = {RG_OPT_TIME_LIMIT, "time-limit", 0, "TIME", false,
			       "when the search gives up: 60s (the default), 500ms, 2m"},
	[RG_OPT_PLANNER] = {RG_OPT_PLANNER, "planner", 0, "NAME", false,
			    "whose memory planner: ridge (default), or tflm (TensorFlow Lite Micro)"},
	[RG_OPT_LEVEL] = {RG_OPT_LEVEL, "level", 0, "N", false,
			  "0 as it was read, 1 standard operators, 2 the same where rounding differs more (default), 3 "
			  "those of ONNX Runtime too"},
	[RG_OPT_DISABLE] = {RG_OPT_DISABLE, "disable", 0, "PASS", true, "a pass that does not run"},
	[RG_OPT_VERIFY] = {RG_OPT_VERIFY, "verify", 0, NULL, false,
			   "run the model before and after every pass, and what was written"},
	[RG_OPT_EXPLAIN] = {RG_OPT_EXPLAIN, "explain", 0, NULL, false,
			    "say what was rewritten, what it saves, and what was not and why"},
	[RG_OPT_OPSET] = {RG_OPT_OPSET, "opset", 0, "N", false,
			  "opset that FILE may need at most (default: that of MODEL, or 17 where it is older)"},
	[RG_OPT_RUNG] = {RG_OPT_RUNG, "rung", 0, "NAME", true, "ladder: measure this rung only"},
	[RG_OPT_WEIGHTS] = {RG_OPT_WEIGHTS, "weights", 0, "NAME", false,
			    "ladder: int8 weights, normal (default) or adversarial (the full range)"},
	[RG_OPT_MISSES] = {RG_OPT_MISSES, "misses", 0, NULL, false,
			   "ladder: simulate cache misses where no hardware counter opens (minutes)"},
	[RG_OPT_ORDER] = {RG_OPT_ORDER, "order", 0, "NAME", false,
			  "order of the steps: graph (default), or memory, where another one lowers the peak"},
	[RG_OPT_CALIBRATE] = {RG_OPT_CALIBRATE, "calibrate", 0, "DIR", false,
			      "samples that ranges are found on: one .npy file each, or one folder each with INPUT.npy"},
	[RG_OPT_VALIDATE] = {RG_OPT_VALIDATE, "validate", 0, "DIR", false,
			     "other samples: how far activations leave the ranges, and what errors are there"},
	[RG_OPT_SAMPLES] = {RG_OPT_SAMPLES, "samples", 0, "N", false,
			    "samples generated from the seed where there is no --calibrate (default 8)"},
	[RG_OPT_DYNAMIC] = {RG_OPT_DYNAMIC, "dynamic", 0, NULL, false,
			    "ranges found as the model runs: DynamicQuantizeLinear and MatMulInteger"},
	[RG_OPT_PER_TENSOR] = {RG_OPT_PER_TENSOR, "per-tensor", 0, NULL, false,
			       "one scale a weight, instead of one a channel"},
	[RG_OPT_SYMMETRIC] = {RG_OPT_SYMMETRIC, "symmetric", 0, NULL, false,
			      "activations int8 with zero point 0, instead of uint8"},
	[RG_OPT_RANGES] = {RG_OPT_RANGES, "ranges", 0, "RULE", false,
			   "how a range is chosen: minmax (default), percentile, entropy or mse"},
	[RG_OPT_PERCENTILE] = {RG_OPT_PERCENTILE, "percentile", 0, "P", false,
			       "share of values that --ranges percentile keeps (default 99.99)"},
	[RG_OPT_MIN_SQNR] = {RG_OPT_MIN_SQNR, "min-sqnr", 0, "DB", false,
			     "an operator that alone leaves the model's outputs less stays float32 (default 10; none)"},
	[RG_OPT_KEEP] = {RG_OPT_KEEP, "keep", 0, "NAME", true, "operator, or type of operator, that stays float32"},
	[RG_OPT_ALSO] = {RG_OPT_ALSO, "also", 0, "TYPE", true,
			 "quantise these, too: Add, Mul, AveragePool, GlobalAveragePool, Sigmoid, LeakyRelu"},
	[RG_OPT_HELP] = {RG_OPT_HELP, "help", 'h', NULL, false, "explain and exit"},
};

#define RUNNING (O(THREADS) | O(SEED) | O(INPUT) | O(INPUT_RANGE) | O(SHAPE) | O(DIM) | O(KERNEL) | \
		 O(WITHOUT_KERNEL) | O(ISA) | O(OPTIMIZE) | O(ORDER))
#define RECORDING (RUNNING | O(ITERATIONS) | O(DURATION) | O(WARMUP) | O(TAG))
#define READING (O(DB) | O(QUIET) | O(HELP))

const struct rg_cmd rg_cmds[] = {
	{"record", "MODEL", 1, 1, "run a model, measure it, and keep the run in the database",
	 "MODEL is an ONNX file or a built-in model: builtin:resnet50, builtin:mobilenet-v2, builtin:vgg16, "
	 "builtin:vit-b16, builtin:unet, builtin:bert-base, builtin:gpt2, builtin:lstm, builtin:mlp.\n"
	 "The recording warms up until it is steady, times every operator, interleaves iterations without "
	 "instrumentation to state its own overhead, and measures the roofs of the machine before and after. "
	 "Interrupted with Ctrl-C, it keeps what it has. Inputs are generated from the seed, valid for their use "
	 "(token ids inside the vocabulary, masks of ones), unless --input gives them.\n"
	 "Nothing goes to standard output, except with --format json: {\"run\": N, ...}.",
	 "ridge record builtin:resnet50\n"
	 "ridge record det.onnx --shape x=1x3x640x640 --iterations 50 --tag before\n"
	 "ridge record builtin:bert-base --dim seq=64 --duration 5s\n"
	 "ridge record builtin:gpt2 --dim past=512",
	 RECORDING | O(DB) | O(FORMAT) | O(QUIET) | O(HELP), "table json", rg_cmd_record},
	{"run", "MODEL", 1, 1, "just execute a model once and look at its outputs",
	 "Nothing is recorded. For every output: type, shape, least, greatest and mean value, and how many are "
	 "NaN; with --output-dir each output is written to DIR/NAME.npy, strings to DIR/NAME.txt, one a line.",
	 "ridge run det.onnx --shape x=1x3x640x640 --input x=image.npy --output-dir out\n"
	 "ridge run builtin:mlp --format json",
	 RUNNING | O(OUTPUT_DIR) | O(FORMAT) | O(QUIET) | O(HELP), "table json csv md", rg_cmd_run},
	{"runs", "", 0, 0, "list the recorded runs, newest first", "", "ridge runs\nridge runs --format json",
	 READING | O(FORMAT), "table json csv md", rg_cmd_runs},
	{"report", "[RUN]", 0, 1, "where the time goes: latency, totals, operators by time",
	 "RUN is a number, a tag, or last (the default). docs/report.md explains every line and column, "
	 "docs/json.md the JSON.\n"
	 "With --static a MODEL stands in its place: it is planned and not run, nothing is kept, and the report "
	 "gives each operator's shape, work and target (the time that the roofs of this machine allow), the memory "
	 "plan, and what is not known; operators that cannot run are named and do not end it.\n"
	 "With --compiler it is about the graph passes instead: docs/compiler.md has them and the reasons.",
	 "ridge report\nridge report before --top 10 --why\nridge report 3 --format json\nridge report --compiler\n"
	 "ridge report --static odd.onnx --dim batch=1",
	 READING | RUNNING | O(FORMAT) | O(TOP) | O(WHY) | O(COMPILER) | O(STATIC),
	 "table json csv md", rg_cmd_report},
	{"plan", "[MODEL]", 0, 1, "what a model needs of memory, and how it is placed",
	 "Says how high the arena of MODEL is, what it cannot be below (the most that is alive at once), how high each "
	 "strategy ends, what is alive at the peak, and the largest buffers. MODEL is not run; operators that cannot "
	 "run are planned all the same. With --capacity it says where a memory of that size first spills: "
	 "the first step, in order, at which something ends above it. docs/compiler.md explains the strategies; "
	 "--format csv writes the buffers as --csv reads them.\n"
	 "--order memory looks for an order of the steps that has less alive at its peak, takes it where there is one, "
	 "and says what the bound was before.\n"
	 "--planner tflm places as TensorFlow Lite Micro does: inputs in the arena as well, sizes rounded up to 16, "
	 "scratch of ridge's kernels left out, nothing written in place. --optimize 0 takes the graph as the file has "
	 "it, which is what another runtime gets.\n"
	 "--csv FILE places buffers without a model, one a line below the line id,lower,upper,size that names the "
	 "columns; a column alignment may follow. Each lives over the half-open interval [lower, upper). "
	 "Standard output gets id,offset, in the order of the file, and standard error one line of summary.\n"
	 "Every placement is proven before it is printed: no two buffers alive at once share a byte.\n"
	 "search looks back until all fits below the capacity, or nothing can; without --capacity it aims at the "
	 "lower bound. portfolio takes the lowest of greedy-lowest, greedy-lowest-back, greedy-size, greedy-size-best, greedy-birth and naive. The "
	 "default of --csv is search with --capacity, else portfolio; that of a MODEL is portfolio, then search "
	 "where that ends more than 1 % above the bound.\n"
	 "The exit status is 0 only when all fits below the capacity, and 1 when it does not, when steps find "
	 "their memory as they run, so that it is not known, or no placement "
	 "was found in time.",
	 "ridge plan builtin:resnet50\n"
	 "ridge plan det.onnx --shape x=1x3x640x640 --optimize 3 --capacity 16M\n"
	 "ridge plan builtin:mlp --planner tflm --format json\n"
	 "ridge plan --csv buffers.csv --capacity 1M > offsets.csv\n"
	 "ridge plan --csv buffers.csv --strategy greedy-size",
	 RUNNING | O(CSV) | O(STRATEGY) | O(CAPACITY) | O(TIME_LIMIT) | O(PLANNER) | O(TOP) | O(FORMAT) | O(QUIET) |
		 O(HELP),
	 "table json csv md", rg_cmd_plan_memory},
	{"plot", "roofline|tail|memory [RUN|MODEL]", 1, 2, "draw a run: its Roofline, its tail latency, its memory",
	 "roofline: operators under one roof a memory level, log-log, sized by their share of the time.\n"
	 "tail: latency against percentile on the axis of wrk2 and HdrHistogram.\n"
	 "memory: the arena, steps across and addresses up, a box a buffer, coloured by the kind of operator that "
	 "makes it; the peak, and with --capacity the size of a memory, are marked. A MODEL (an ONNX file, or "
	 "builtin:resnet50) is planned and not run. In the terminal it is the sum of what is alive at each step.\n"
	 "The ending of FILE chooses the form: .svg, .png, .pdf, or .gp for the gnuplot script. - (the default) "
	 "draws in the terminal. gnuplot must be installed (Debian: gnuplot-nox).",
	 "ridge plot roofline -o roofline.svg\nridge plot tail before -o tail.png --size 1200x800\n"
	 "ridge plot memory builtin:resnet50 --optimize 3 --capacity 8M -o memory.png\n"
	 "ridge plot roofline",
	 READING | RUNNING | O(OUTPUT) | O(SIZE) | O(CAPACITY), NULL, rg_cmd_plot},
	{"path", "[RUN]", 0, 1, "the critical path of one recorded inference",
	 "Every moment of the wall time belongs to one segment: a step, a step waited for because its lane was "
	 "busy, or a gap. They sum to the wall time. Beside it: the longest chain of data edges, and the slack of each "
	 "step.",
	 "ridge path\nridge path before --format json", READING | O(FORMAT), "table json csv md", rg_cmd_path},
	{"whatif", "[RUN]", 0, 1, "what if an operator were faster: replayed, beside Amdahl's bound",
	 "--op names an operator, or an operator type for all of that type. The recorded schedule is replayed "
	 "with their times divided by --speedup.",
	 "ridge whatif --op Conv --speedup 2\nridge whatif before --op Softmax --speedup inf",
	 READING | O(FORMAT) | O(OP) | O(SPEEDUP), "table json md", rg_cmd_whatif},
	{"check", "[MODEL|RUN]", 0, 1, "answer the 24 questions of the checklist",
	 "An existing file or a builtin: name is recorded first, with the options of ridge record; anything else "
	 "is a run (default: last). Each answer has a verdict (good, attention, problem, unknown), a sentence, "
	 "figures with their provenance, and the evidence.\n"
	 "With --static the model is planned and not run, and nothing is kept: what needs times stays unknown; "
	 "operators that cannot run are named and do not end it.",
	 "ridge check builtin:resnet50\nridge check last --format json\nridge check --static odd.onnx",
	 RECORDING | O(DB) | O(FORMAT) | O(QUIET) | O(STATIC) | O(HELP), "table json md", rg_cmd_check},
	{"machine", "", 0, 0, "measure the ceilings of this machine: peak and bandwidth a level", "",
	 "ridge machine\nridge machine --quick --format json",
	 O(THREADS) | O(ISA) | O(QUICK) | O(FORMAT) | O(QUIET) | O(HELP), "table json csv md", rg_cmd_machine},
	{"bench", "gemm|conv|ladder [SHAPE|MODEL]...", 1, RG_MAX_POSITIONAL,
	 "time single operators, kernel by kernel, against the roof; or the ladder of a matrix product",
	 "Each shape is a model of one node, run by the executor with every kernel that supports it. For each: the "
	 "median time of a call with a 95 % interval, FLOP/s, byte/s, and the share of the roof that was measured "
	 "just before and after. * marks the kernel that a plan would take. The reference is measured when it is "
	 "asked for, or when nothing else runs the shape.\n"
	 "gemm: m=128,k=768,n=3072 or 128x768x3072 (MxKxN), then b=var or b=const (a weight, packed beforehand; "
	 "without b= both), ta=1, tb=1 (stored transposed), bias=1, batch=12.\n"
	 "conv: c=64,h=56,w=56,m=64,k=3 (channels, height and width of the input, channels of the output, kernel), "
	 "then stride=2, pad=1, dilation=2, group=64, n=4 (batch), bias=1; k, stride and dilation may be HxW, pad "
	 "also TOPxLEFTxBOTTOMxRIGHT; without pad= the size is kept at stride 1.\n"
	 "A MODEL (an ONNX file, or builtin:bert-base) stands for each shape among its nodes, once. Without any: "
	 "64^3 to 1024^3 and 128x768x3072, or the convolutions of resnet50 and mobilenet-v2.\n"
	 "--kernel NAME measures this kernel only; it may be given more than once.\n"
	 "ladder: the classical exercise. Shapes MxKxN, as words or with --shape (default: 64^3 to 1024^3 and "
	 "128x768x3072); rungs naive (i, j, k), ikj, tiled and simd (register-blocked) of float32, ridge (our best "
	 "kernel), openblas; int8-scalar, int8-simd (untiled), int8-blocked, int8-ridge. For each the rate, the "
	 "median time, the share of the roof of its own type, cache misses, and the error against sums in double "
	 "or int64; below it what these figures say. -o FILE.png plots them. A rung that takes long gets fewer "
	 "rounds; the default shapes take under a minute on two cores.\n"
	 "Cache misses come from hardware counters, or with --misses from Valgrind's callgrind, a minute or more "
	 "for the three smallest shapes; larger ones are simulated when they are named.",
	 "ridge bench gemm 128x768x3072 --threads 1\n"
	 "ridge bench conv c=64,h=56,w=56,m=64,k=3 --kernel openblas --kernel ref\n"
	 "ridge bench gemm builtin:bert-base --quick --format json\n"
	 "ridge bench ladder --threads 1 -o ladder.png\n"
	 "ridge bench ladder 256x256x256 --isa avx2 --misses",
	 O(THREADS) | O(SEED) | O(DIM) | O(SHAPE) | O(KERNEL) | O(WITHOUT_KERNEL) | O(ISA) | O(QUICK) | O(ROUNDS) |
		 O(RUNG) | O(WEIGHTS) | O(MISSES) | O(OUTPUT) | O(SIZE) | O(FORMAT) | O(QUIET) | O(HELP),
	 "table json csv md", rg_cmd_bench, .bare_names = true},
	{"doctor", "", 0, 0, "what this machine lets us measure, and why not", "", "ridge doctor",
	 O(FORMAT) | O(QUIET) | O(HELP), "table json csv md", rg_cmd_doctor},
	{"export", "MODEL", 1, 1, "write a built-in model as an ONNX file",
	 "The file holds the same graph and the same seeded weights, so that another runtime can be timed on it, or "
	 "its outputs compared (--input of ridge run takes the same .npy files). The open dimensions stay open.",
	 "ridge export builtin:gpt2 -o gpt2.onnx", O(OUTPUT) | O(QUIET) | O(HELP), NULL, rg_cmd_export},
	{"optimize", "MODEL", 1, 1, "rewrite a model so that it runs faster, and write it as an ONNX file",
	 "What ridge itself does to a graph (docs/compiler.md) for whoever runs it elsewhere: operators that an "
	 "exporter took apart, or that go into the weights of the one before them. Names, inputs, outputs and open "
	 "dimensions stay. The opset is raised where a rewrite needs a younger one.\n"
	 "Dimensions that the file leaves open stay open: the model is rewritten at two sizes of each, and nodes that "
	 "would not become the same at both are left as they are. With --shape or --dim for all dimensions they are "
	 "rewritten, and those that matter are fixed in FILE. --explain says which.\n"
	 "--verify runs the model before and after every pass on inputs that are seeded, zeros, ones, large, tiny and "
	 "denormal, and then what was written. Where an output differs by more than 1e-3 of its largest number "
	 "(float32; 5e-3 with large inputs) the pass and the node are named, the exit status is 1, and nothing is written.\n"
	 "Standard output gets the explanation, or with --format json everything that was done and declined.",
	 "ridge optimize det.onnx -o det-fast.onnx --verify --explain\n"
	 "ridge optimize builtin:resnet50 -o resnet50.onnx --level 3\n"
	 "ridge optimize det.onnx -o det-fast.onnx --disable hard-swish --shape x=1x3x640x640 --format json",
	 O(OUTPUT) | O(LEVEL) | O(DISABLE) | O(OPSET) | O(VERIFY) | O(EXPLAIN) | O(SHAPE) | O(DIM) | O(INPUT) | O(INPUT_RANGE) |
		 O(SEED) | O(THREADS) | O(FORMAT) | O(QUIET) | O(HELP),
	 "table json", rg_cmd_optimize},
	{"quantize", "MODEL", 1, 1, "turn a model into eight bits, and say what each operator loses by it",
	 "Writes an ONNX file with QuantizeLinear and DequantizeLinear around Conv, Gemm and MatMul, which every runtime "
	 "runs and those that know the pattern turn into integer operators. Weights are int8, one scale a channel, "
	 "activations uint8, a constant bias int32. The model is rewritten first as by ridge optimize --level 2. "
	 "docs/quantize.md explains all of it.\n"
	 "Ranges come from --calibrate DIR; without it inputs are generated from the seed, and then neither the file nor "
	 "the figures are worth much.\n"
	 "Each operator is quantised alone and the model run: SQNR (signal to quantisation noise, in decibels; 20 dB is an "
	 "error of a tenth) at the model's outputs and at its own. One with less than --min-sqnr stays float32, and is "
	 "listed. Then everything is, and what was written is read and run again.\n"
	 "The figures are kept in the database; ridge check answers precision.* for MODEL with the newest of them.",
	 "ridge quantize det.onnx -o det-int8.onnx --calibrate pictures\n"
	 "ridge quantize det.onnx -o det-int8.onnx --calibrate pictures --validate others --ranges mse --keep Conv_12\n"
	 "ridge quantize minilm.onnx -o minilm-int8.onnx --dynamic --format json",
	 O(OUTPUT) | O(CALIBRATE) | O(VALIDATE) | O(SAMPLES) | O(DYNAMIC) | O(PER_TENSOR) | O(SYMMETRIC) | O(RANGES) |
		 O(PERCENTILE) | O(MIN_SQNR) | O(KEEP) | O(ALSO) | O(QUICK) | O(SHAPE) | O(DIM) | O(INPUT_RANGE) |
		 O(SEED) | O(THREADS) | O(DB) | O(FORMAT) | O(QUIET) | O(HELP),
	 "table json", rg_cmd_quantize},
	{"tui", "[MODEL|RUN]", 0, 1, "look around in the terminal",
	 "With a MODEL, a key records it. Keys are shown at the bottom; ? explains them.",
	 "ridge tui\nridge tui builtin:resnet50", RECORDING | O(DB) | O(HELP), NULL, rg_cmd_tui},
	{"help", "[VERB]", 0, 1, "explain a verb",
	 "--format md writes the reference of all verbs (docs/commands.md).", "ridge help record",
	 O(FORMAT) | O(HELP), "table md", rg_cmd_help},
	{"completion", "bash|zsh|fish", 1, 1, "print a completion script for a shell", "",
	 "source <(ridge completion bash)\nridge completion fish > ~/.config/fish/completions/ridge.fish",
	 O(HELP), NULL, rg_cmd_completion, true},
	{"ladder-once", "RUNG SHAPE WEIGHTS KERNEL", 4, 4, "run one rung of the ladder twice, for the simulator", "",
	 "ridge ladder-once ikj 64x64x64 normal scalar", O(HELP), NULL, rg_cmd_ladder_once, true},
	{"man", "", 0, 0, "print the manual page", "", "ridge man | man -l -", O(HELP), NULL, rg_cmd_man, true},
};
const int rg_n_cmds = sizeof(rg_cmds) / sizeof(rg_cmds[0]);
