//! Why a rule of a user is refused.

/// Why a rule cannot be applied. The texts are those of Valkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// No rule looks like this.
    #[error("Syntax error")]
    Syntax,
    /// No such command or category.
    #[error("Unknown command or category name in ACL")]
    Unknown,
    /// A key pattern where all keys are permitted already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try \
         'resetkeys' to start with an empty list of patterns"
    )]
    KeysAfterAll,
    /// A channel pattern where all channels are permitted already.
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try \
         'resetchannels' to start with an empty list of channels"
    )]
    ChannelsAfterAll,
    /// `<password` or `!hash` of a password that the user does not have.
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    /// `#hash` or `!hash` that is not a hash.
    #[error("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")]
    NotHash,
    /// `#hash` or `!hash` of Argon2id that is damaged or too expensive.
    #[error(
        "The password hash is no Argon2id hash of version 19 with m up to 262144, t up to 16 and p up to 16, or is damaged"
    )]
    NotSlowHash,
    /// `+config|get|x`
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgumentOfSubcommand,
    /// `db=` with a number that no database has.
    #[error("The provided database ID is out of range")]
    DatabaseOutOfRange,
}
