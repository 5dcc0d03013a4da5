//! Who may connect and do what.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::choice;
use crate::inert::Inert;

const NO_ACL: &str = "users and their rights are not offered yet, so everybody would have every right; requirepass protects \
                      the one user there is";

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
        "Who may use the DEBUG command: nobody, everybody, or connections over loopback and the unix socket.",
    )
    .at_start(),
    Directive::always_refused("user", NO_ACL).sensitive(),
    Directive::refused("aclfile", &[""], "", NO_ACL).at_start(),
    Directive::not_needed(
        "acl-pubsub-default",
        Inert::choice("resetchannels", &["allchannels", "resetchannels"]),
        "there are no users with channel rights yet",
    ),
    Directive::not_needed(
        "acllog-max-len",
        Inert::integer("128", 0, i64::MAX),
        "there are no users with rights yet, so there is no log of denials",
    ),
    Directive::always_refused(
        "rename-command",
        "commands keep their names, so a command that this line hides could still be called",
    ),
    Directive::not_needed(
        "enable-protected-configs",
        Inert::choice("no", &["no", "yes", "local"]),
        "paths such as dir never change at run time, whoever asks",
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
