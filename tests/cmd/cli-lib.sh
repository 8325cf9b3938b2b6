# Shared by the end-to-end tests: runs ridge as a person would, and prints TAP.
# Sourced; needs RIDGE_EXE and CLI_TOOL (meson sets them).
set -u

for program in "${RIDGE_EXE:-}" "${CLI_TOOL:-}"; do
	[ -x "$program" ] || { echo "Bail out! RIDGE_EXE and CLI_TOOL must name programs"; exit 1; }
done
ridge=$(realpath "$RIDGE_EXE")
tool=$(realpath "$CLI_TOOL")
tmp=$(mktemp -d)
chmod 755 "$tmp"
trap 'chmod -R u+rwX "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/work"
cd "$tmp/work" || exit 1
out=$tmp/out
err=$tmp/err
status=0
n=0
unset RIDGE_DB NO_COLOR

# Runs ridge ARGS: $status, and what it said in $out and $err. as=(...) goes before.
as=()
run() {
	status=0
	"${as[@]}" timeout 100 "$ridge" "$@" </dev/null >"$out" 2>"$err" || status=$?
}

# pass NAME / fail NAME WHY: one point.
pass() {
	n=$((n + 1))
	echo "ok $n - $1"
}
fail() {
	n=$((n + 1))
	echo "not ok $n - $1"
	{
		echo "$2; exit status $status"
		head -c 600 "$out"
		head -c 3000 "$err"
	} | sed 's/^/#   /'
}
skip() { # NAME REASON
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}
# point NAME COMMAND...: passes when the command does.
point() {
	local name=$1 why
	shift
	if why=$("$@" 2>&1); then pass "$name"; else fail "$name" "$* ${why//$'\n'/ }"; fi
}
plan() { echo "1..$n"; }

# The error of the last run: nothing on standard output, on standard error what
# happened ("ridge: ...TEXT...") and what to do, one line each.
told() { # STATUS TEXT
	local first second
	{ read -r first && IFS= read -r second; } <"$err"
	[ "$status" -eq "$1" ] || { echo "status is not $1:"; return 1; }
	[ ! -s "$out" ] || { echo "standard output is not empty:"; return 1; }
	[ "$(wc -l <"$err")" -eq 2 ] || { echo "not two lines:"; return 1; }
	[[ $first == "ridge: "*"$2"* && ${#first} -le 600 ]] || { echo "the first line lacks '$2':"; return 1; }
	[[ $second == "  "[!\ ]* ]] || { echo "the second line is no hint:"; return 1; }
}
# refuse NAME STATUS TEXT ARGS...
refuse() {
	local name=$1 want=$2 text=$3
	shift 3
	run "$@"
	point "$name" told "$want" "$text"
}
# The last run went well, and standard error has at most this many lines.
done_well() { # LINES
	[ "$status" -eq 0 ] || { echo "status is not 0:"; return 1; }
	[ "$(wc -l <"$err")" -le "$1" ] || { echo "standard error has more than $1 lines:"; return 1; }
}
# good NAME ARGS...: done, and nothing on standard error.
good() {
	local name=$1
	shift
	run "$@"
	point "$name" done_well 0
}
# json NAME "ARGS" ASSERTION...: done, and the JSON holds all of it (cli-tool).
json() {
	local name=$1 args
	read -ra args <<<"$2"
	shift 2
	run "${args[@]}" --format json
	if [ "$status" -ne 0 ]; then fail "$name" "ridge ${args[*]}"; else point "$name" "$tool" json "$out" "$@"; fi
}
