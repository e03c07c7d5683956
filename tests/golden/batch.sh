#!/bin/bash
#SBATCH --job-name=prony-run
#SBATCH --output=prony-run-%A_%a.log
#SBATCH --array=0-1
#SBATCH --time=0-00:12:00
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@60
#SBATCH --partition=gpu
#SBATCH -A 'my account'

prony=/usr/bin/prony
folder='/shared/my folder'   # all nodes see it
name=$((SLURM_ARRAY_TASK_ID + 1))           # of the part
run=${PRONY_RUN_ID:-$SLURM_ARRAY_JOB_ID}    # one run of all parts
local=${TMPDIR:-/tmp}/prony-$UID
mkdir -m 700 "$local" 2>/dev/null
if [ ! -O "$local" ] || [ -L "$local" ]; then
	echo "$local is not yours" >&2; exit 1
fi
local=$local/$run-$name.db
shared=$folder/parts/$name.db
mkdir -p "$folder/parts"
# A task that was requeued goes on with what it has measured.
[ -e "$local" ] || cp "$shared" "$local" 2>/dev/null

"$prony" run -f null,fake -n mlp -s forward,train -d synthetic -b 4 --setup 'echo '\''x'\''' \
	--part "$name/2" --run-id "$run" \
	--store "$local" --resume &
trap 'kill -TERM $!' TERM
wait $!                                     # a signal ends it, too
wait $!; code=$?

# The import writes one file, also if prony was killed; it appears whole.
"$prony" import "$local" --store "$shared.$SLURM_JOB_ID" &&
	mv -f "$shared.$SLURM_JOB_ID" "$shared" && rm -f "$local"
exit $code
