# What a process that hangs does on its GPU (FLARE §5.1, for jobs without our plug-in). Read by inspect-hang.sh, which
# calls these commands one by one: an error in one (a kernel that is over, no focus) must not keep the others from running.
#
# Commands only look. Nothing is resumed, written or set in the process.

set pagination off
set confirm off
set width 0
set height 0
set print frame-arguments none
set print thread-events off

define faultline_kernels
  printf "== devices\n"
  info cuda devices
  printf "== kernels\n"
  info cuda kernels
end

# One kernel: how many of its blocks are left, and where their threads are. A block of an NCCL kernel is a channel.
define faultline_kernel
  printf "== kernel %d\n", $arg0
  cuda kernel $arg0
  printf "== blocks of kernel %d\n", $arg0
  info cuda blocks
  printf "== threads of kernel %d\n", $arg0
  info cuda threads
end

# The code around one block's first thread: a load, a comparison and a branch backwards is a loop that waits.
define faultline_block
  printf "== code of kernel %d, block %d\n", $arg0, $arg1
  cuda kernel $arg0 block ($arg1,0,0) thread (0,0,0)
  x/i $pc
  x/16i $pc-128
end

# The host's threads; NCCL's proxy is the one in ncclProxyProgress.
define faultline_host
  printf "== host threads\n"
  thread apply all backtrace 24
end

# Last, for older debuggers do not know it, and an error ends the file. Symbols would be looked for on the network.
set debuginfod enabled off
