//! Commands of Redis and Valkey that this version does not have. A client that sends one learns so from the error,
//! instead of "unknown command", which reads like a typing error.
//!
//! The table is the only place that lists them. COMMAND and its relatives describe the commands that work, so none of
//! these appears there. Page: docs/protocol/absent-commands.md, which a test compares with the table.

/// Names that are absent for one reason.
struct Absence {
    /// In lower case; `container|subcommand` for a subcommand, and `family.*` for every name that begins so.
    names: &'static [&'static str],
    why: Why,
}

/// What the error says.
enum Why {
    /// "NAME is not available in this version: " and this.
    NotOffered(&'static str),
    /// The words of Redis and Valkey for a server outside of a cluster: client libraries look for them.
    ClusterDisabled,
}

const CLUSTER_DISABLED: &str = "ERR This instance has cluster support disabled";

static ABSENT: &[Absence] = &[
    Absence {
        names: &["sync", "psync", "replconf"],
        why: Why::NotOffered(
            "a server has no replicas of its own yet; BGSAVE RDB writes a file that Redis and Valkey load",
        ),
    },
    Absence { names: &["failover"], why: Why::NotOffered("a server has no replicas of its own yet") },
    Absence {
        names: &["module|load", "module|loadex", "module|unload"],
        why: Why::NotOffered("modules are not supported"),
    },
    Absence {
        names: &[
            "json.*",
            "bf.*",
            "cf.*",
            "cms.*",
            "topk.*",
            "tdigest.*",
            "ts.*",
            "ft.*",
            "graph.*",
            "ai.*",
            "rg.*",
            "vadd",
            "vcard",
            "vdim",
            "vemb",
            "vgetattr",
            "vinfo",
            "vismember",
            "vlinks",
            "vrandmember",
            "vrange",
            "vrem",
            "vsetattr",
            "vsim",
        ],
        why: Why::NotOffered("vector sets and the data types of modules are not supported"),
    },
    Absence {
        names: &["delex", "digest", "xackdel", "xcfgset", "xdelex"],
        why: Why::NotOffered("it is a command of Redis 8, and this server follows Valkey 9.1"),
    },
    Absence {
        names: &["pfdebug", "pfselftest", "restore-asking"],
        why: Why::NotOffered("it is an internal command of other servers"),
    },
    Absence {
        names: &[
            "asking",
            "clusterscan",
            "cluster|addslots",
            "cluster|addslotsrange",
            "cluster|bumpepoch",
            "cluster|cancelslotmigrations",
            "cluster|count-failure-reports",
            "cluster|countkeysinslot",
            "cluster|delslots",
            "cluster|delslotsrange",
            "cluster|failover",
            "cluster|flushslot",
            "cluster|flushslots",
            "cluster|forget",
            "cluster|getkeysinslot",
            "cluster|getslotmigrations",
            "cluster|help",
            "cluster|info",
            "cluster|links",
            "cluster|meet",
            "cluster|migrateslots",
            "cluster|myid",
            "cluster|myshardid",
            "cluster|nodes",
            "cluster|replicas",
            "cluster|replicate",
            "cluster|reset",
            "cluster|saveconfig",
            "cluster|set-config-epoch",
            "cluster|setslot",
            "cluster|shards",
            "cluster|slaves",
            "cluster|slot-stats",
            "cluster|slots",
            "cluster|syncslots",
        ],
        why: Why::ClusterDisabled,
    },
];

/// The error for a command that is known and absent; `None` for a name that no server has. `name` in any case, in full
/// (`acl|setuser`).
#[cold]
pub fn refusal(name: &[u8]) -> Option<String> {
    ABSENT.iter().find_map(|absence| {
        let name = absence.names.iter().find(|absent| is_named(absent, name))?;
        Some(match absence.why {
            Why::NotOffered(reason) => format!("ERR {} is not available in this version: {reason}", shown(name)),
            Why::ClusterDisabled => CLUSTER_DISABLED.to_owned(),
        })
    })
}

/// Every name of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().flat_map(|absence| absence.names).copied()
}

fn is_named(absent: &str, name: &[u8]) -> bool {
    match absent.strip_suffix('*') {
        Some(family) => name.get(..family.len()).is_some_and(|start| start.eq_ignore_ascii_case(family.as_bytes())),
        None => name.eq_ignore_ascii_case(absent.as_bytes()),
    }
}

/// The name as a person would type it.
fn shown(name: &str) -> String {
    name.replace('|', " ").to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_command_is_named_with_its_reason() {
        for (name, error) in [
            ("FailOver", "ERR FAILOVER is not available in this version: a server has no replicas of its own yet"),
            ("module|LOAD", "ERR MODULE LOAD is not available in this version: modules are not supported"),
            (
                "Json.Get",
                "ERR JSON.* is not available in this version: vector sets and the data types of modules are not supported",
            ),
            ("cluster|info", "ERR This instance has cluster support disabled"),
        ] {
            assert_eq!(refusal(name.as_bytes()).as_deref(), Some(error), "{name}");
        }
        for name in ["evil", "json", "acl", "acl|setuser", "cluster", ""] {
            assert_eq!(refusal(name.as_bytes()), None, "{name}");
        }
    }

    /// The page has one row for each reason, with all of its names.
    #[test]
    fn the_page_lists_the_table() {
        let page = include_str!("../../../../docs/protocol/absent-commands.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let wanted: Vec<String> = ABSENT
            .iter()
            .map(|absence| {
                let names: Vec<_> = absence.names.iter().map(|name| format!("`{}`", shown(name))).collect();
                let why = match absence.why {
                    Why::NotOffered(reason) => reason,
                    Why::ClusterDisabled => CLUSTER_DISABLED.trim_start_matches("ERR "),
                };
                format!("| {} | {why} |", names.join(", "))
            })
            .collect();
        assert_eq!(rows, wanted, "the rows should be:\n{}", wanted.join("\n"));
    }
}
