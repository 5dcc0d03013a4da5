use super::{Arcus, Command, Limits, Parser, Progress, Refusal};
use crate::Arguments;
use proptest::prelude::*;

const LIMITS: Limits = Limits::of_items(100);

/// A command and its arguments.
type Request = (Command, Vec<Vec<u8>>);

/// All requests of an input that arrives in these pieces, and whether the connection would close.
fn requests(pieces: &[&[u8]]) -> (Vec<Request>, bool) {
    let (mut parser, mut kept, mut all) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        let input = std::mem::take(&mut kept);
        let mut at = 0;
        while at < input.len() {
            let mut arguments = Arguments::new();
            let rest = &input[at..];
            match parser.parse(rest, &LIMITS, &mut arguments) {
                Progress::Request { command, consumed } => {
                    // What stands before or after the requests of a pipe.
                    let is_mark = matches!(command, Command::Arcus(Arcus::PipeBegin | Arcus::PipeEnd));
                    assert!((consumed > 0 || is_mark) && consumed <= rest.len());
                    let words = arguments.spans().iter().map(|span| arguments.bytes(rest, *span).to_vec());
                    all.push((command, words.collect()));
                    at += consumed;
                }
                Progress::Nothing { consumed } => {
                    assert!(consumed > 0 && consumed <= rest.len() && arguments.is_empty());
                    at += consumed;
                }
                Progress::Incomplete => {
                    assert!(arguments.is_empty());
                    kept = rest.to_vec();
                    break;
                }
                Progress::Foreign { .. } => return (all, true),
            }
        }
    }
    (all, false)
}

fn shown(input: &[u8]) -> String {
    let (requests, closes) = requests(&[input]);
    let line = |(command, words): &Request| {
        let words: Vec<_> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
        format!("{command:?}({})", words.join(" "))
    };
    let mut lines: Vec<_> = requests.iter().map(line).collect();
    if closes {
        lines.push("closes".to_owned());
    }
    lines.join(", ")
}

#[test]
fn requests_have_their_arguments_in_order() {
    for (input, expected) in [
        ("get k\r\n", "Get(get k)"),
        ("get k\n", "Get(get k)"),
        ("  get   k  \r\n", "Get(get k)"),
        ("get a b  c \r\n", "GetMore(get a), GetMore(get b), Get(get c)"),
        ("gats 5 a b\r\nget c\r\n", "GatsMore(gats a 5), Gats(gats b 5), Get(get c)"),
        ("gat 5\r\n", "GetNothing(gat)"),
        ("set k 1 -2 3\r\nabc\r\n", "Set(set k abc 1 -2)"),
        ("set k 1 2 3 noreply\r\na\n\r\r\n", "Set(set k a\\n\\r 1 2 noreply)"),
        ("set k 1 2 0 other\r\n\r\n", "Set(set k  1 2)"),
        ("cas k 1 2 1 77\r\nx\r\n", "Cas(cas k x 1 2 77)"),
        ("cas k 1 2 1 77 noreply\r\nx\r\n", "Cas(cas k x 1 2 77 noreply)"),
        ("incr k 5\r\ndecr k 6 noreply\r\n", "Incr(incr k 5), Decr(decr k 6 noreply)"),
        ("incr k 5 1 0 7\r\n", "Incr(incr k 5 1 0 7)"),
        ("decr k 5 1 -1 7 noreply\r\n", "Decr(decr k 5 1 -1 7 noreply)"),
        ("touch k 10\r\n", "Touch(touch k 10)"),
        (
            "delete k\r\ndelete k 0\r\ndelete k 0 noreply\r\n",
            "Delete(delete k), Delete(delete k), Delete(delete k noreply)",
        ),
        ("flush_all\r\nflush_all 5 noreply\r\n", "FlushAll(flush_all), FlushAll(flush_all 5 noreply)"),
        ("version\r\nmn\r\nquit\r\n", "Version(version), MetaNoop(mn), Quit(quit)"),
        ("mg k v c\r\nma k D5\r\n", "MetaGet(mg k v c), MetaArithmetic(ma k D5)"),
        ("ms k 3 T0 F5\r\nabc\r\nmd k q\r\n", "MetaSet(ms k abc T0 F5), MetaDelete(md k q)"),
        ("mg aGk= b k\r\n", "MetaGet(mg hi b k)"),
        ("me k\r\n", "MetaDebug(me k)"),
        ("mget 6 3\r\na bc d\r\nmn\r\n", "GetMore(mget a), GetMore(mget bc), Get(mget d), MetaNoop(mn)"),
        ("mgets 1 1\r\na\r\n", "Gets(mgets a)"),
        ("lop get k 1..2 drop\r\n", "Arcus(LopGet)(lop get k   1..2 drop)"),
        ("sop insert k 3 noreply\r\nabc\r\n", "Arcus(SopInsert)(sop insert k abc noreply)"),
        (
            "sop exist k 1 pipe\r\nx\r\nsop exist k 1\r\ny\r\n",
            "Arcus(PipeBegin)(sop), Arcus(SopExist)(sop exist k x pipe), Arcus(SopExist)(sop exist k y ), \
             Arcus(PipeEnd)(\\n)",
        ),
        // As ARCUS' Java client sends it.
        ("sop exist k 1 1\r\nx\r\n", "Arcus(SopExist)(sop exist k x  1)"),
        ("bop mget 3 2 1..5 9\r\na b\r\n", "Arcus(BopMget)(bop mget 2 a b 1..5 9)"),
        ("bop update k 1 0x01 -1\r\n", "Arcus(BopUpdateEflag)(bop update k   1 0x01 -1)"),
        ("stats items\r\nverbosity 1\r\n", "Stats(stats items), Verbosity(verbosity 1)"),
    ] {
        assert_eq!(shown(input.as_bytes()), expected, "{input:?}");
    }
}

#[test]
fn wrong_lines_are_refused_as_memcached_refuses_them() {
    let long = "k".repeat(251);
    for (input, expected) in [
        ("\r\n".to_owned(), "Refused(Unknown)()"),
        ("GET k\r\n".to_owned(), "Refused(Unknown)()"),
        ("get\r\n".to_owned(), "Refused(Unknown)()"),
        (format!("get {long}\r\n"), "Refused(Format)()"),
        (format!("get a b {long}\r\n"), "Refused(Format)()"),
        ("gat x k\r\n".to_owned(), "Refused(Expiration)()"),
        ("set k 0 0\r\n".to_owned(), "Refused(Unknown)()"),
        // Its data is then a command.
        ("set k x 0 3\r\nmn\r\n".to_owned(), "Refused(Format)(), MetaNoop(mn)"),
        ("set k 0 0 -1\r\n".to_owned(), "Refused(Format)()"),
        ("set k 4294967296 0 1\r\n".to_owned(), "Refused(Format)()"),
        ("set k x 0 3 noreply\r\n".to_owned(), ""),
        (format!("set {long} 0 0 1\r\n"), "Refused(Format)()"),
        // As many bytes as announced are taken; what follows is a command.
        ("set k 0 0 1\r\nabcmn\r\n".to_owned(), "Refused(Data)(), MetaNoop(mn)"),
        ("set k 0 0 1 noreply\r\nabc\r\n".to_owned(), "Refused(Unknown)()"),
        (format!("set k 0 0 101\r\n{}\r\nmn\r\n", "x".repeat(101)), "SetTooLarge(set k), MetaNoop(mn)"),
        (format!("add k 0 0 101\r\n{}\r\nmn\r\n", "x".repeat(101)), "Refused(TooLarge)(), MetaNoop(mn)"),
        ("mg\r\nme\r\n".to_owned(), "Refused(Unknown)(), Refused(Format)()"),
        (format!("mg {long}\r\n"), "Refused(Format)()"),
        (format!("mg k {}\r\n", "v ".repeat(18)), "Refused(FlagCount)()"),
        ("ms k\r\nms k x\r\n".to_owned(), "Refused(Format)(), Refused(Format)()"),
        ("ms k 1\r\nabc\r\n".to_owned(), "Refused(Data)(), Refused(Unknown)()"),
        ("mg !!! b\r\nms !!! 1 b\r\na\r\nmn\r\n".to_owned(), "Refused(Key)(), Refused(Key)(), MetaNoop(mn)"),
        (format!("ms k 101\r\n{}\r\nmn\r\n", "x".repeat(101)), "SetTooLarge(ms k), MetaNoop(mn)"),
        ("incr k x\r\n".to_owned(), "Refused(Delta)()"),
        ("incr k x 0 0 1\r\n".to_owned(), "Refused(Delta)()"),
        ("incr k 1 x 0 1\r\nincr k 1 0 x 1\r\n".to_owned(), "Refused(Format)(), Refused(Format)()"),
        ("incr k 1 0 0 x\r\nincr k 1 0 0 1 other\r\n".to_owned(), "Refused(Format)(), Refused(Format)()"),
        ("incr k 1 0 0 x noreply\r\nincr k 1 0 0\r\n".to_owned(), "Refused(Unknown)()"),
        ("sop exist k 1 1 1\r\nmn\r\n".to_owned(), "Refused(Format)(), MetaNoop(mn)"),
        // Counts that cannot be right: the keys are skipped.
        ("mget 3 3\r\nabc\r\nmn\r\n".to_owned(), "Refused(BadValue)(), MetaNoop(mn)"),
        ("mget 3 2\r\nabc\r\nmn\r\n".to_owned(), "Refused(Data)(), MetaNoop(mn)"),
        ("mget 3 2\r\na\nb\r\nmn\r\n".to_owned(), "Refused(Data)(), MetaNoop(mn)"),
        ("mget x 2\r\nmn\r\n".to_owned(), "Refused(Format)(), MetaNoop(mn)"),
        ("incr k -1\r\n".to_owned(), "Refused(Delta)()"),
        ("touch k x\r\n".to_owned(), "Refused(Expiration)()"),
        ("delete k 1\r\n".to_owned(), "Refused(DeleteFormat)()"),
        ("delete k 1 noreply\r\n".to_owned(), ""),
        ("flush_all x\r\n".to_owned(), "Refused(Expiration)()"),
        ("verbosity\r\nverbosity x\r\n".to_owned(), "Refused(Unknown)(), Refused(Format)()"),
        ("cache_memlimit\r\ncache_memlimit x\r\n".to_owned(), "Refused(Unknown)(), Refused(Unknown)()"),
        ("GET / HTTP/1.1\r\n".to_owned(), "closes"),
        ("\u{80}".to_owned(), ""),
    ] {
        assert_eq!(shown(input.as_bytes()), expected, "{input:?}");
    }
    assert_eq!(shown(b"\x80\0\0\0"), "closes");
    assert_eq!(shown(&[b'x'; 2049]), "closes");
    // Whether it arrives at once or not.
    assert_eq!(shown(&[&[b'x'; 2049][..], b"\r\n"].concat()), "closes");
    assert_eq!(shown(&[&[b'x'; 2047][..], b"\r\n"].concat()), "Refused(Unknown)()");
    assert_eq!(shown(&[b"get ", &[b'x'; 5000][..]].concat()), "");
    assert_eq!(shown(&[&[b' '; 101][..], b"get ", &[b'x'; 5000]].concat()), "closes");
}

#[test]
fn refusals_say_what_memcached_says() {
    assert_eq!(Refusal::DeleteFormat.text(), "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
    assert_eq!(Refusal::TooLarge.text(), "SERVER_ERROR object too large for cache");
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("get"),
        Just("gets"),
        Just("gat"),
        Just("set"),
        Just("add"),
        Just("cas"),
        Just("incr"),
        Just("delete"),
        Just("touch"),
        Just("noreply"),
        Just("k"),
        Just("key2"),
        Just("0"),
        Just("1"),
        Just("3"),
        Just("101"),
        Just("-1"),
        Just("flush_all"),
        Just("mn"),
        Just("mg"),
        Just("ms"),
        Just("b"),
        Just("aGk="),
        Just(""),
        Just("lop insert k 0 3 create 1 0 0 pipe\r\nabc\r\nlop insert k 1 1\r\nx\r\n"),
        Just("lop insert"),
        Just("sop exist"),
        Just("mop get k 3 2\r\na b\r\n"),
        Just("getattr"),
        Just("mget 3 2\r\na b\r\n"),
        Just("bop insert k 1 0x01 3"),
        Just("bop get"),
        Just("1..5"),
        Just("create"),
        Just("pipe"),
        Just("drop"),
        Just("\n"),
        Just("\r"),
        Just("abc\r\n"),
    ];
    prop::collection::vec(word, 0..9).prop_map(|words| [words.join(" ").as_bytes(), b"\r\n"].concat())
}

proptest! {
    /// M1.
    #[test]
    fn pieces_make_no_difference(
        lines in prop::collection::vec(any_line(), 1..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let input = lines.concat();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        cuts.extend([0, input.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]).collect();
        prop_assert_eq!(requests(&pieces), requests(&[&input]));
    }

    #[test]
    fn any_bytes_are_taken(input in prop::collection::vec(any::<u8>(), 0..300)) {
        requests(&[&input]);
    }
}
