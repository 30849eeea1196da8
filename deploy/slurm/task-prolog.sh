#!/bin/sh
# Slurm's TaskProlog (slurm.conf: TaskProlog=/opt/faultline/slurm/task-prolog.sh), as the job's user before each task: what it
# prints as "export NAME=value" is the task's environment. A job switches the probe off with FAULTLINE_PROBE=0.
probe=${FAULTLINE_PROBE_FOLDER:-/opt/faultline/probe}
[ "${FAULTLINE_PROBE:-1}" != 0 ] && [ -d "$probe/faultline_probe" ] || exit 0
echo "export FAULTLINE_PROBE=1"
echo "export FAULTLINE_JOB=${FAULTLINE_JOB:-$SLURM_JOB_ID}"
case ":${PYTHONPATH:-}:" in
*":$probe/site:"*) ;;
*) echo "export PYTHONPATH=$probe/site:$probe${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
[ -n "${NCCL_PROFILER_PLUGIN:-}" ] || [ ! -f "$probe/faultline_probe/libfaultline.so" ] ||
  echo "export NCCL_PROFILER_PLUGIN=$probe/faultline_probe/libfaultline.so"
[ -n "${TORCH_NCCL_DEBUG_INFO_PIPE_FILE:-}" ] || echo "export TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/dev/shm/fr_pipe_$SLURM_JOB_ID."
