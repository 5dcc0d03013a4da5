//! Rules as they are read, described and applied. The texts are those of Valkey 9.1.

use super::*;
use crate::{Args, CommandTable};
use base::DbIndex;
use proto::Span;

const ALL_CHANNELS: Defaults = Defaults { has_all_channels: true, hashing: Hashing::Sha256 };
const ARGON2ID: Defaults = Defaults { has_all_channels: false, hashing: Hashing::Argon2id };

fn table() -> CommandTable {
    CommandTable::new(crate::redis::FAMILIES)
}

/// A fresh user after these rules, separated by blanks.
fn user(table: &CommandTable, rules: &str) -> Rules {
    try_user(table, rules).unwrap_or_else(|error| panic!("{}", String::from_utf8_lossy(&error.to_text())))
}

fn try_user(table: &CommandTable, rules: &str) -> Result<Rules, RulesError> {
    let rules: Vec<&str> = rules.split(' ').filter(|rule| !rule.is_empty()).collect();
    Rules::new(false).with(&rules, table, Defaults::default())
}

fn described(table: &CommandTable, rules: &str) -> String {
    String::from_utf8(user(table, rules).describe()).unwrap()
}

/// Why a request, its words separated by blanks, is denied in this database.
fn denied(table: &CommandTable, rules: &str, request: &str, db: u32) -> Option<(Reason, usize)> {
    let (mut input, mut spans) = (Vec::new(), Vec::new());
    for word in request.split(' ') {
        spans.push(Span::new(input.len(), word.len()).unwrap());
        input.extend_from_slice(word.as_bytes());
    }
    let args = Args::new(&input, &spans, &[]);
    let row = table.resolve(&args).unwrap_or_else(|_| panic!("{request} is no request"));
    check(&user(table, rules), &row, &args, Scope { db: DbIndex(db), database_count: 16 })
        .err()
        .map(|denied| (denied.reason, denied.argument))
}

#[test]
fn a_user_is_described_by_the_rules_that_make_it_again() {
    let table = table();
    for (rules, expected) in [
        ("", "off resetchannels -@all"),
        ("on nopass ~* &* +@all", "on nopass ~* &* +@all"),
        ("~a %R~b %W~c &n.* &m", "off ~a %R~b %W~c resetchannels &n.* &m -@all"),
        ("%RW~x %R~y %W~y ~y", "off ~x ~y resetchannels -@all"),
        (
            "db=3,1,1 (+get ~a) ( +set   db=2 )",
            "off resetchannels db=1,3 -@all (~a resetchannels -@all +get) (resetchannels db=2 -@all +set)",
        ),
        (
            "+@all -client +client|id -client|list +client|list",
            "off resetchannels +@all -client +client|id +client|list",
        ),
        ("-get +get +@READ -@read +client -client|LIST", "off resetchannels -@all +get -@read +client -client|list"),
        ("+select|0 -select +SELECT|1 +select|1", "off resetchannels -@all -select +select|1"),
        ("resetdbs", "off resetchannels resetdbs -@all"),
        ("%R", "off %R~ resetchannels -@all"),
        // Known to Valkey, and absent here.
        ("+psync +replconf -cluster|slots", "off resetchannels -@all +psync +replconf -cluster|slots"),
    ] {
        let text = described(&table, rules);
        assert_eq!(text, expected, "{rules}");
        assert_eq!(described(&table, &text), text, "read again");
    }
}

#[test]
fn passwords_are_kept_as_hashes_without_repetition() {
    let table = table();
    let hash = Hash::of(b"p").to_string();
    assert_eq!(described(&table, ">p >p nopass >p"), format!("off #{hash} resetchannels -@all"));
    assert_eq!(described(&table, &format!("#{hash} >q <q")), format!("off #{hash} resetchannels -@all"));
    assert_eq!(described(&table, &format!(">p !{hash}")), "off resetchannels -@all");
    assert_eq!(described(&table, ">p resetpass"), "off resetchannels -@all");
    assert!(!user(&table, "on nopass >p").needs_no_password);
}

/// New passwords get the slow form, hashes of either form are taken, and rules about one password find it.
#[test]
fn passwords_with_argon2id_are_strings_that_read_back() {
    let table = table();
    let with = |rules: Rules, more: &[&str]| rules.with(more, &table, ARGON2ID).unwrap();
    let one = with(Rules::new(false), &[">p", ">p"]);
    let [kept] = one.passwords() else { panic!("one password") };
    let phc = kept.to_string();
    assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
    assert!(kept.is_of(b"p") && !kept.is_of(b"q"));
    assert_eq!(described(&table, &format!("#{phc}")), format!("off #{phc} resetchannels -@all"));
    assert_eq!(with(one.clone(), &["<p"]).passwords(), []);
    assert_eq!(with(one.clone(), &[&format!("!{phc}")]).passwords(), []);
    assert!(one.is_slow(&["<p"], Defaults::default()) && !one.is_slow(&["+get"], ARGON2ID));
    let fast = user(&table, ">p >q");
    assert!(!fast.is_slow(&[">p"], Defaults::default()) && fast.is_slow(&[">p"], ARGON2ID));
    let upgraded = with(fast, &[">p"]);
    let kinds: Vec<bool> = upgraded.passwords().iter().map(|kept| kept.slow().is_some()).collect();
    assert_eq!(kinds, [false, true], "the SHA-256 hash of p is gone, and that of q stays");
    assert_eq!(try_user(&table, &format!("#{phc}*")).unwrap_err(), {
        RulesError::Rule(format!("#{phc}*").into_bytes(), RuleError::NotSlowHash)
    });
}

#[test]
fn reset_is_what_a_new_user_is() {
    let table = table();
    assert_eq!(user(&table, "on >p ~a &b +@all db=1 (+get) reset"), Rules::new(false));
    assert_eq!(Rules::new(false).with(&["~a", "reset"], &table, ALL_CHANNELS).unwrap(), Rules::new(true));
}

#[test]
fn a_wrong_rule_changes_nothing_and_is_named() {
    let table = table();
    for (rule, why) in [
        ("nosuch", RuleError::Syntax),
        ("+nosuch", RuleError::Unknown),
        ("-nosuch", RuleError::Unknown),
        ("-select|0", RuleError::Unknown),
        ("+@nosuch", RuleError::Unknown),
        ("+client|nosuch", RuleError::Unknown),
        ("+client|id|x", RuleError::FirstArgumentOfSubcommand),
        ("+client|", RuleError::Syntax),
        ("+select|0\x0b1", RuleError::Syntax),
        ("%~x", RuleError::Syntax),
        ("%", RuleError::Syntax),
        ("%RR~x", RuleError::Syntax),
        ("<p", RuleError::NoSuchPassword),
        ("#p", RuleError::NotHash),
        ("!p", RuleError::NotHash),
        ("(on)", RuleError::Syntax),
        ("db=", RuleError::Syntax),
        ("db=1,", RuleError::Syntax),
        ("db=1;2", RuleError::Syntax),
        ("db=-1", RuleError::DatabaseOutOfRange),
        ("db=2147483648", RuleError::DatabaseOutOfRange),
    ] {
        assert_eq!(try_user(&table, rule), Err(RulesError::Rule(rule.into(), why)), "{rule}");
    }
    assert_eq!(try_user(&table, "~* ~a"), Err(RulesError::Rule("~a".into(), RuleError::KeysAfterAll)));
    assert_eq!(try_user(&table, "&* &a"), Err(RulesError::Rule("&a".into(), RuleError::ChannelsAfterAll)));
    assert_eq!(try_user(&table, "(+get ~a"), Err(RulesError::Unmatched("(+get".into())));
}

#[test]
fn a_request_needs_one_selector_that_permits_all_of_it() {
    use Reason::{Channel, Command, Database, Key};
    let table = table();
    for (rules, request, expected) in [
        ("+@all ~*", "get a", None),
        ("+get ~a", "get a", None),
        ("+get ~a", "set a v", Some((Command, 0))),
        ("+get ~a", "get b", Some((Key, 1))),
        ("+mget ~a", "mget a b", Some((Key, 2))),
        ("+@all -get ~*", "get a", Some((Command, 0))),
        ("+client|id", "client id", None),
        ("+client|id", "client list", Some((Command, 0))),
        ("+client -client|list", "client list", Some((Command, 0))),
        ("+select|1", "select 1", None),
        ("+select|1", "select 2", Some((Command, 0))),
        ("", "auth x", None),
        ("+@all %R~a", "get a", None),
        ("+@all %R~a", "set a v", Some((Key, 1))),
        ("+@all %W~a", "set a v", None),
        ("+@all %W~a", "set a v get", Some((Key, 1))),
        ("+@all %R~a %W~b", "copy a b", None),
        ("+@all %R~a %W~b", "copy b a", Some((Key, 1))),
        ("+@all ~*", "publish c x", Some((Channel, 1))),
        ("+@all &c*", "publish c1 x", None),
        ("+@all &c*", "subscribe c1 d", Some((Channel, 2))),
        ("+@all &c*", "psubscribe c*", None),
        ("+@all &c*", "psubscribe c1", Some((Channel, 1))),
        ("+@all", "unsubscribe c", None),
        ("+@all ~* db=1", "get a", Some((Database, 0))),
        ("+@all ~* db=1", "ping", None),
        ("~* db=1", "get a", Some((Database, 0))),
        ("~* db=1 (~* +set)", "get a", Some((Command, 0))),
        ("+get ~* db=1 (+@all ~* db=2)", "get a", Some((Database, 0))),
        ("+get ~* db=1 (+get ~b)", "get a", Some((Key, 1))),
        ("~* db=1", "select 0", Some((Database, 1))),
        ("+@all ~* db=0", "select 1", Some((Database, 1))),
        ("+@all ~* db=0", "move a 1", Some((Database, 2))),
        ("+@all ~* db=0", "copy a b replace db 1", Some((Database, 5))),
        ("+@all ~* db=0", "copy a b db x", None),
        ("+@all ~* db=0", "copy a b x db 1", None),
        ("+@all ~* db=0", "copy a b db 0 replace db 1", Some((Database, 7))),
        ("+@all ~* db=0", "move a 16", None),
        ("+get ~a (+set ~b)", "set b v", None),
        ("+get ~a (+set ~b)", "set a v", Some((Key, 1))),
        ("+get ~a (+get ~b)", "get c", Some((Key, 1))),
        ("+mget ~a (+mget ~b)", "mget a b", Some((Key, 2))),
    ] {
        assert_eq!(denied(&table, rules, request, 0), expected, "{rules}: {request}");
    }
}

/// The random family `acl` found it: `~**` permitted an empty key here and not in Valkey.
#[test]
fn stars_do_not_permit_an_empty_name() {
    let table = table();
    for (rules, request, expected) in [
        ("+get ~**", "GET ", Some((Reason::Key, 1))),
        ("+get %R~*", "GET ", Some((Reason::Key, 1))),
        ("+get ~*", "GET ", None),
        ("+get ~", "GET ", None),
        ("+get ~**", "GET a", None),
        ("+publish &**", "PUBLISH  x", Some((Reason::Channel, 1))),
        ("+publish &*", "PUBLISH  x", None),
    ] {
        assert_eq!(denied(&table, rules, request, 0), expected, "{rules} {request:?}");
    }
}

/// Every row belongs to categories and, tried by a user with every command but this one, is refused.
#[test]
fn every_command_is_refused_to_a_user_without_it() {
    let table = table();
    for (name, spec) in table.rows() {
        assert!(categories(spec).count() > 0, "{name}");
        let words: Vec<&str> = name.split('|').collect();
        let count = usize::from(spec.arity.unsigned_abs()).max(words.len());
        let request = words.iter().copied().chain(std::iter::repeat("1")).take(count).collect::<Vec<_>>().join(" ");
        if matches!(spec.run, crate::Run::Container(_)) {
            continue;
        }
        let is_free = spec.flags.contains(crate::Flags::NO_AUTH);
        let expected = (!is_free).then_some((Reason::Command, 0));
        assert_eq!(denied(&table, &format!("+@all ~* &* -{name}"), &request, 0), expected, "{name}");
        assert_eq!(denied(&table, &format!("~* &* +{name}"), &request, 0), None, "{name}");
    }
}

/// Every key of a request needs a permission: without any, a command with keys is refused for the first of them.
#[test]
fn every_key_is_refused_to_a_user_without_it() {
    let table = table();
    for (name, spec) in table.rows() {
        let has_keys = spec.keys.iter().any(|keys| !keys.flags.contains(crate::KeyFlags::NOT_KEY));
        if let Some(first) = spec.first_key().filter(|_| has_keys) {
            let words: Vec<&str> = name.split('|').collect();
            let count = usize::from(spec.arity.unsigned_abs()).max(first + 1);
            let request = words.iter().copied().chain(std::iter::repeat("1")).take(count).collect::<Vec<_>>().join(" ");
            let found = denied(&table, "+@all &*", &request, 0);
            assert!(matches!(found, Some((Reason::Key, _))), "{name}: {found:?}");
            assert_eq!(denied(&table, "+@all ~1", &request, 0), None, "{name}");
        }
    }
}

#[test]
fn changes_of_users_are_seen_through_the_same_user() {
    let (table, users) = (table(), Users::default());
    let before = users.generation().load(std::sync::atomic::Ordering::Acquire);
    users.set(b"alice", &["on", "+get", "~a"], &table).unwrap();
    let alice = users.find(b"alice").unwrap();
    users.set(b"alice", &["+@all", "~*", "&*"], &table).unwrap();
    assert!(alice.rules().is_unrestricted());
    assert_eq!(users.generation().load(std::sync::atomic::Ordering::Acquire), before + 2);
    users.set(b"alice", &["nosuch"], &table).unwrap_err();
    assert!(users.delete(b"alice") && !users.delete(b"alice") && !users.delete(DEFAULT_USER));
    assert!(alice.is_gone() && alice.expels(0, None));
}

#[test]
fn an_acl_file_is_read_whole_or_not_at_all() {
    let table = table();
    let read = |text: &str| read_users(text.as_bytes(), "f", &table, Defaults::default());
    let users = read("user alice on nopass (+get ~a) ~b\n\n  user default off\r\n").unwrap();
    let shown: Vec<_> = users.iter().map(|(name, rules)| [name, &b" "[..], &rules.describe()].concat()).collect();
    let shown: Vec<_> = shown.iter().map(|line| String::from_utf8_lossy(line)).collect();
    let alice = "alice on nopass ~b resetchannels -@all (~a resetchannels -@all +get)";
    assert_eq!(shown, [alice, "default off resetchannels -@all"]);
    for (text, error) in [
        ("alice on", "f:1 should start with user keyword followed by the username. "),
        ("\nuser", "f:2 should start with user keyword followed by the username. "),
        ("user a on\nuser a off", "WARNING: Duplicate user 'a' found on line 2. "),
        ("user a +nosuch", "f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. "),
        ("user a <secret", "f:1: The password you are trying to remove from the user does not exist. "),
        ("user a (+get", "f:1: Unmatched parenthesis in selector definition."),
    ] {
        let end = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
        assert_eq!(read(text).unwrap_err().to_string(), format!("{error}{end}"));
    }
}

#[test]
fn users_that_are_missing_after_a_load_are_gone_and_default_comes_back() {
    let (table, users) = (table(), Users::default());
    users.set(b"alice", &["on"], &table).unwrap();
    users.set(b"bob", &["on"], &table).unwrap();
    users.set(DEFAULT_USER, &["off"], &table).unwrap();
    let (alice, bob) = (users.find(b"alice").unwrap(), users.find(b"bob").unwrap());
    let text = b"user alice off\n";
    users.replace_all(read_users(text, "f", &table, Defaults::default()).unwrap());
    assert!(!alice.is_gone() && !alice.rules().is_enabled && bob.is_gone());
    assert!(users.default_user().rules().is_open());
    assert_eq!(write_users(&users.all()), b"user alice off resetchannels -@all\nuser default on nopass ~* &* +@all\n");
}

/// The property of the fuzz target `acl`, for random rules of which many are right.
#[test]
fn described_rules_make_a_user_with_the_same_description() {
    const WORDS: [&str; 44] = [
        "on",
        "off",
        "nopass",
        "resetpass",
        ">p",
        ">q",
        "<p",
        "allkeys",
        "~*",
        "resetkeys",
        "allchannels",
        "&*",
        "resetchannels",
        "allcommands",
        "+@all",
        "nocommands",
        "-@all",
        "alldbs",
        "resetdbs",
        "clearselectors",
        "reset",
        "~a",
        "~a*",
        "%R~a",
        "%W~a",
        "%RW~b",
        "%WR~c",
        "&c",
        "&c*",
        "db=0",
        "db=1,2",
        "db=",
        "+get",
        "-get",
        "+@read",
        "-@read",
        "+client|id",
        "-client|id",
        "+client",
        "-client",
        "+select|0",
        "+nosuch",
        "+@nosuch",
        "%R~",
    ];
    let table = table();
    let mut rng = base::Rng::new(36);
    let word = |rng: &mut base::Rng| {
        let mut word = WORDS[rng.below(WORDS.len() as u64) as usize].as_bytes().to_vec();
        if rng.below(4) == 0 {
            let at = rng.below(word.len() as u64 + 1) as usize;
            word.insert(at, b"*|@~&+-%#(),=\"\\\t\x80a0"[rng.below(19) as usize]);
        }
        word
    };
    let mut accepted = 0;
    for _ in 0..30_000 {
        let mut rules: Vec<Vec<u8>> = (0..1 + rng.below(5)).map(|_| word(&mut rng)).collect();
        if rng.below(3) == 0 {
            let inner: Vec<Vec<u8>> = (0..rng.below(4)).map(|_| word(&mut rng)).collect();
            rules.push([b"(", &*inner.join(&b' '), b")"].concat());
        }
        let Ok(made) = Rules::new(false).with(&rules, &table, Defaults::default()) else { continue };
        accepted += 1;
        let text = made.describe();
        let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
        let again = Rules::new(false).with(&words, &table, Defaults::default()).map(|again| again.describe());
        let (from, shown) = (rules.join(&b' '), String::from_utf8_lossy(&text));
        assert_eq!(again.as_deref(), Ok(&*text), "{shown:?} of {:?}", String::from_utf8_lossy(&from));
    }
    assert!(accepted > 3_000, "{accepted}");
}
