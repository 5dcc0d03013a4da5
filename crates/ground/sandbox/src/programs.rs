//! Seccomp: the system calls that begin another program or process are refused in all threads.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// Calls that are refused whatever their arguments are.
#[cfg(target_arch = "x86_64")]
const REFUSED: [i64; 8] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_fork,
    libc::SYS_vfork,
    // The same by the numbers of the ABI x32, which old kernels take from any program.
    X32 + 520,
    X32 + 545,
    X32 + libc::SYS_fork,
    X32 + libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Added to the numbers of the ABI x32.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Calls whose first argument says whether they make a thread.
#[cfg(target_arch = "x86_64")]
const CLONE: [i64; 2] = [libc::SYS_clone, X32 + libc::SYS_clone];
#[cfg(not(target_arch = "x86_64"))]
const CLONE: [i64; 1] = [libc::SYS_clone];

/// The call whose arguments are in memory, where a filter cannot see them.
#[cfg(target_arch = "x86_64")]
const CLONE3: [i64; 2] = [libc::SYS_clone3, X32 + libc::SYS_clone3];
#[cfg(not(target_arch = "x86_64"))]
const CLONE3: [i64; 1] = [libc::SYS_clone3];

/// Refuses them from now on, in all threads.
pub(crate) fn forbid() -> Result<(), String> {
    let filters = (|| {
        let no_thread =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0)?;
        let mut refused: BTreeMap<_, _> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        for call in CLONE {
            refused.insert(call, vec![SeccompRule::new(vec![no_thread.clone()])?]);
        }
        // The C library then makes threads with `clone`.
        let absent = CLONE3.iter().map(|call| (*call, Vec::new())).collect();
        Ok::<_, seccompiler::BackendError>([filter(refused, libc::EPERM)?, filter(absent, libc::ENOSYS)?])
    })();
    let filters = filters.map_err(|error| format!("no filter for this processor: {error}"))?;
    for filter in &filters {
        apply_filter_all_threads(filter)
            .map_err(|error| format!("the kernel refuses the filter of seccomp: {error}"))?;
    }
    Ok(())
}

/// A filter under which these calls answer this error.
fn filter(calls: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, refused, architecture)?.try_into()
}
