//! Seccomp: the system calls that begin another program or process are refused in all threads.
//!
//! ```text
//! number:  0 .. clone | clone, fork, vfork, execve | .. execveat | .. clone3 | .. 2^30 | ABI x32 ..
//!          allowed    | refused, but for threads   | refused     | absent    | allowed | absent
//! ```
//!
//! P1. One filter. What a worker calls for each request (read, write, epoll) passes it in at most seven instructions.
//!     Since Linux 5.11 the kernel knows which numbers always pass and runs none of it for them.
//! P2. No number of the ABI x32 gets through: a table with numbers of its own would need a filter of its own.

use seccompiler::{apply_filter_all_threads, sock_filter};

/// What the kernel calls this processor, with the number of its ABI.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// Added to the numbers of the ABI x32. No other ABI has numbers as high.
const X32: u32 = 0x4000_0000;

/// Where the kernel gives a filter the number, the architecture and the first argument.
const NUMBER: u32 = 0;
const ARCHITECTURE_GIVEN: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

// From linux/bpf_common.h.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const HAS_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// What the filter answers.
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
/// The C library then makes threads with `clone`.
const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// Refuses them from now on, in all threads.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
pub(crate) fn forbid() -> Result<(), String> {
    apply_filter_all_threads(&filter()).map_err(|error| format!("the kernel refuses the filter of seccomp: {error}"))
}

/// There is no filter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(crate) fn forbid() -> Result<(), String> {
    Err("no filter for this processor".to_owned())
}

/// The filter. Jumps count the instructions that they skip. Between `clone` and `execve` the numbers are `clone`,
/// `fork`, `vfork` and `execve`, or without the two in the middle.
fn filter() -> [sock_filter; 16] {
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    let (clone, execve) = (number(libc::SYS_clone), number(libc::SYS_execve));
    let (execveat, clone3) = (number(libc::SYS_execveat), number(libc::SYS_clone3));
    let step = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    [
        step(LOAD, ARCHITECTURE_GIVEN, 0, 0),
        step(EQUAL, ARCHITECTURE, 0, 13), // else killed
        step(LOAD, NUMBER, 0, 0),
        step(AT_LEAST, clone, 0, 8),    // else allowed
        step(ABOVE, execve, 0, 4),      // else one of the four
        step(AT_LEAST, execveat, 0, 6), // else allowed
        step(EQUAL, execveat, 6, 0),
        step(EQUAL, clone3, 6, 0),
        step(AT_LEAST, X32, 5, 3),
        step(EQUAL, clone, 0, 3), // the others are refused
        // The low half of the flags, on processors that store it first, as all of these do.
        step(LOAD, FIRST_ARGUMENT, 0, 0),
        step(HAS_BIT, libc::CLONE_THREAD.unsigned_abs(), 0, 1),
        step(RETURN, ALLOW, 0, 0),
        step(RETURN, REFUSE, 0, 0),
        step(RETURN, ABSENT, 0, 0),
        step(RETURN, KILL, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call, and how many instructions it takes.
    fn run(architecture: u32, number: u32, argument: u64) -> (u32, usize) {
        let program = filter();
        let (mut at, mut loaded, mut steps) = (0, 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            steps += 1;
            let jump = |holds: bool| 1 + usize::from(if holds { jt } else { jf });
            at += match code {
                RETURN => return (k, steps),
                LOAD => {
                    loaded = match k {
                        NUMBER => number,
                        ARCHITECTURE_GIVEN => architecture,
                        FIRST_ARGUMENT => argument as u32,
                        _ => panic!("offset {k}"),
                    };
                    1
                }
                EQUAL => jump(loaded == k),
                AT_LEAST => jump(loaded >= k),
                ABOVE => jump(loaded > k),
                HAS_BIT => jump(loaded & k != 0),
                _ => panic!("code {code}"),
            };
        }
    }

    fn answer(number: i64, argument: u64) -> u32 {
        run(ARCHITECTURE, u32::try_from(number).unwrap(), argument).0
    }

    #[test]
    fn only_what_begins_programs_and_processes_is_refused() {
        let thread = libc::CLONE_THREAD.unsigned_abs();
        let refused: &[i64] = &[
            libc::SYS_clone,
            libc::SYS_execve,
            libc::SYS_execveat,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_vfork,
        ];
        for number in 0..2000 {
            let expected = match number {
                libc::SYS_clone3 => ABSENT,
                _ if refused.contains(&number) => REFUSE,
                _ => ALLOW,
            };
            assert_eq!(answer(number, 0), expected, "{number}");
        }
        assert_eq!(answer(libc::SYS_clone, u64::from(thread)), ALLOW);
        assert_eq!(answer(libc::SYS_clone, u64::from(!thread)), REFUSE);
        assert_eq!(answer(libc::SYS_execve, u64::MAX), REFUSE);
        // The ABI x32, other processors, and numbers that are negative.
        for number in [X32, X32 + 520, X32 + 545, X32 + 56, u32::MAX] {
            assert_eq!(run(ARCHITECTURE, number, 0).0, ABSENT, "{number:#x}");
        }
        assert_eq!(run(ARCHITECTURE ^ 1, 0, 0).0, KILL);
    }

    /// P1.
    #[test]
    fn frequent_calls_pass_in_seven_instructions() {
        for call in [
            libc::SYS_read,
            libc::SYS_readv,
            libc::SYS_recvfrom,
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_epoll_pwait,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait,
            libc::SYS_futex,
            libc::SYS_fdatasync,
            libc::SYS_pwrite64,
            libc::SYS_madvise,
        ] {
            let (answer, steps) = run(ARCHITECTURE, u32::try_from(call).unwrap(), 0);
            assert_eq!(answer, ALLOW, "{call}");
            assert!(steps <= 7, "{call} takes {steps}");
        }
    }
}
