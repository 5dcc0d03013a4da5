//! Which clients may connect, and what they may do.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{choice, flag, integer, optional_path, text};
use crate::inert::Inert;

pub(super) static SECURITY: &[Directive] = &[
    Directive::supported(
        "requirepass",
        Field::Secret { get: |s| &s.requirepass, set: |s, secret| s.requirepass = secret },
        "",
        "",
        "The password that AUTH and HELLO ask for. Empty for none. Choose a long random one: \
         after some failures from one address, further failures are answered up to a second later, but an attacker may \
         have many addresses.",
    )
    .sensitive(),
    Directive::supported(
        "enable-debug-command",
        choice!(enable_debug_command: DebugCommand),
        "no",
        "",
        "Which clients may use the DEBUG command: none, all, or connections over loopback and the unix socket.",
    )
    .at_start(),
    Directive::user().sensitive().at_start(),
    Directive::supported(
        "aclfile",
        optional_path!(acl_file),
        "",
        "",
        "A file of users, one a line as in `user NAME RULE...`, which ACL LOAD reads and ACL SAVE writes. With it, this file \
         has no `user` lines. Empty for none.",
    )
    .at_start(),
    Directive::supported(
        "acl-password-hash",
        choice!(acl_password_hash: PasswordHash),
        "sha256",
        "",
        "How new passwords of users are kept. sha256: as Redis and Valkey keep them, so that ACL files go both ways. argon2id: \
         salted and slow to guess, for Onggi alone; a login takes some 30 ms of a thread the first time, and microseconds \
         after that.",
    ),
    Directive::supported(
        "acl-pubsub-default",
        choice!(acl_pubsub_default: ChannelDefault),
        "resetchannels",
        "",
        "The channels that a new user may use: all, or none until its rules name some.",
    ),
    Directive::supported(
        "acllog-max-len",
        integer!(acl_log_entries_max: 0, i64::MAX),
        "128",
        "entries",
        "How many denied requests and logins ACL LOG shows at most.",
    ),
    Directive::supported(
        "sandbox",
        flag!(sandbox),
        "yes",
        "",
        "Takes from the process what a server never needs: other programs, by seccomp, and files outside of the directories that settings name, by Landlock. The log says at the start which parts are in force. A kernel that lacks a part starts the server without it.",
    )
    .at_start(),
    Directive::supported(
        "sandbox-allow-path",
        text!(sandbox_allow_path),
        "",
        "",
        "Further directories or files that the server may read and write in spite of `sandbox`, such as a directory for later certificates. Blanks separate them; with more than one, quote the whole.",
    )
    .at_start(),
    Directive::always_refused(
        "rename-command",
        "commands keep their names, so a command that this line hides could still be called",
    ),
    Directive::not_needed(
        "enable-protected-configs",
        Inert::choice("no", &["no", "yes", "local"]),
        "paths such as dir never change at run time",
    ),
    Directive::not_needed(
        "enable-module-command",
        Inert::choice("no", &["no", "yes", "local"]),
        "modules are not loaded",
    ),
    Directive::not_needed(
        "hide-user-data-from-log",
        Inert::flag("yes"),
        "keys and values are never written to the log",
    ),
];
