//! Library functions that stand in the place of Lua's own: the same results, on random arguments, and an end when the
//! host ends the script.

use super::tests::{Echo, raised, run_with};
use super::*;
use base::random::Rng;
use std::time::{Duration, Instant};

/// Shows what a call gives: its values with their types, or its error.
const SHOW: &str = r#"
local function show(...)
  local shown = ""
  for i = 1, select('#', ...) do
    local value = select(i, ...)
    local kind = type(value)
    if kind == "table" then
      local parts = ""
      for i = -3, 20 do parts = parts .. (type(value[i]) == "table" and "table" or tostring(value[i])) .. "," end
      shown = shown .. "{" .. parts .. "}"
    else
      shown = shown .. kind .. ":" .. (kind == "function" and "" or tostring(value)) .. ";"
    end
  end
  return shown
end
local name, one, two, three, four = unpack(ARGV)
local function number(text) return text ~= "" and tonumber(text) or nil end
"#;

/// What is called, by a word.
const CALLS: &str = r#"
local calls = {}
function calls.find() return string.find(one, two, number(three), four == "plain") end
function calls.match() return string.match(one, two, number(three)) end
function calls.gmatch()
  local all, count = "", 0
  for a, b, c in string.gmatch(one, two) do
    count = count + 1
    all = all .. show(a, b, c) .. "/"
    if count > 30 then break end
  end
  return all
end
function calls.gsub() return string.gsub(one, two, three, number(four)) end
function calls.gsub_number() return string.gsub(one, two, 12, number(four)) end
function calls.gsub_table() return string.gsub(one, two, {a = "x", b = 5, ab = false, [1] = "p", [2] = true}) end
function calls.gsub_function()
  local seen = ""
  local a, b = string.gsub(one, two, function(...)
    seen = seen .. show(...)
    if #seen % 3 == 0 then return nil end
    if #seen % 7 == 0 then return {} end
    pcall(string.gsub, one, "(", "")
    return (string.gsub(tostring((...)), "%w", "<%0>"))
  end, number(four))
  return a, b, seen
end
function calls.gsub_other() return string.gsub(one, two, nil) end
function calls.rep() return string.rep(one, number(three)) end
local function values(text)
  local all = {}
  for i = 1, #text do
    local byte = string.byte(text, i)
    all[i] = four == "strings" and string.sub(text, i) or byte % 16
  end
  return all
end
function calls.sort() local all = values(one) table.sort(all) return all end
function calls.sort_function()
  local seen, count = 0, 0
  local all = values(one)
  table.sort(all, function(a, b)
    count = count + 1
    seen = (seen * 31 + (tonumber(a) or #a) * 7 + (tonumber(b) or #b)) % 65521
    if three == "1" then return count % 3 == 0 end
    if three == "2" then return a <= b end
    if three == "3" and count > 9 then error("enough") end
    return a > b
  end)
  return all, seen, count
end
function calls.sort_mixed() local all = values(one) all[3] = {} table.sort(all) return all end
function calls.concat() return table.concat(values(one), two, number(three), number(four)) end
function calls.concat_hole() local all = values(one) all[2] = {} return table.concat(all, two) end
function calls.insert() local all = values(one) return all, table.insert(all, number(three) or 1, "new") end
function calls.insert_end() local all = values(one) return all, table.insert(all, "new") end
function calls.insert_many() local all = values(one) return all, table.insert(all, 1, 2, 3) end
function calls.remove() local all = values(one) return all, table.remove(all, number(three)) end
function calls.foreachi()
  local seen = ""
  local found = table.foreachi(values(one), function(i, v)
    seen = seen .. show(i, v)
    if v == number(three) then return i end
  end)
  return found, seen
end
function calls.wrong()
  return pcall(string.find, nil, "x"), pcall(string.gsub, "x"), pcall(table.sort, 1), pcall(table.sort, {}, 1),
    pcall(table.concat), pcall(table.insert, {}), pcall(table.remove), pcall(table.foreachi, {}), pcall(string.rep),
    pcall(string.gmatch, {}, ""), pcall(string.match, "x", "x", {}), select(2, pcall(string.find, "x", {})),
    select(2, pcall(table.concat, {}, {})), select(2, pcall(string.gsub, "x", "x", "x", "x"))
end
return show(pcall(calls[name]))
"#;

const NAMES: &[&str] = &[
    "find",
    "find",
    "match",
    "match",
    "gmatch",
    "gsub",
    "gsub",
    "gsub_number",
    "gsub_table",
    "gsub_function",
    "gsub_other",
    "rep",
    "sort",
    "sort_function",
    "sort_mixed",
    "concat",
    "concat_hole",
    "insert",
    "insert_end",
    "insert_many",
    "remove",
    "foreachi",
    "wrong",
];

/// Pieces of patterns: whole items, and what makes patterns malformed.
const ITEMS: &[&str] = &[
    "a",
    "b",
    "a*",
    "b-",
    "a+",
    "b?",
    ".",
    ".*",
    ".-",
    "%a",
    "%A*",
    "%d",
    "%s",
    "%w+",
    "%p",
    "%l",
    "%U",
    "%x-",
    "%z",
    "%c",
    "[ab]",
    "[^a]",
    "[^%w]*",
    "[a-c]+",
    "[]]",
    "[^]a]",
    "[a-]",
    "[%]b]",
    "(",
    ")",
    "()",
    "(a*)",
    "(.)",
    "%1",
    "%2",
    "%0",
    "%bab",
    "%b()",
    "%b",
    "%f[%w]",
    "%f[^ab]",
    "%fa",
    "^",
    "$",
    "%",
    "[",
    "[a",
    "[%",
    "*",
    "-",
    "\0",
    "%%",
    "%.",
    "[\0-\u{7f}]",
];

const BYTES: &[u8] = b"aaabbbc ()12.%\0\xff]-A_\n";

fn subject(rng: &mut Rng) -> Vec<u8> {
    (0..rng.below(14)).map(|_| BYTES[rng.below(BYTES.len() as u64) as usize]).collect()
}

fn pick<'p, T>(rng: &mut Rng, of: &'p [T]) -> &'p T {
    &of[rng.below(of.len() as u64) as usize]
}

fn arguments(rng: &mut Rng) -> [Vec<u8>; 5] {
    let name = *pick(rng, NAMES);
    let pattern: Vec<u8> = match name {
        "concat" | "concat_hole" => subject(rng),
        _ if rng.one_in(8) => subject(rng),
        _ => (0..rng.below(6)).flat_map(|_| pick(rng, ITEMS).bytes()).collect(),
    };
    let integer = |rng: &mut Rng| match rng.below(5) {
        0 => String::new(),
        1 => format!("{}", rng.below(24) as i64 - 8),
        2 => format!("{}.7", rng.below(8)),
        _ => rng.below(6).to_string(),
    };
    let three = match name {
        "gsub" => {
            let pieces = ["%0", "%1", "%2", "%9", "x", "%", "%%", "%a", "", "\0", "yz"];
            (0..rng.below(4)).flat_map(|_| pick(rng, &pieces).bytes()).collect()
        }
        _ => integer(rng).into_bytes(),
    };
    let four = match name {
        "find" if rng.one_in(4) => "plain".to_owned(),
        "sort" | "sort_function" | "concat" if rng.one_in(2) => "strings".to_owned(),
        _ => integer(rng),
    };
    [name.as_bytes().to_vec(), subject(rng), pattern, three, four.into_bytes()]
}

#[test]
fn results_are_those_of_the_functions_of_lua() {
    let text = [SHOW, CALLS].concat();
    let mut engines = [true, false].map(|replaces| {
        let mut engine = Engine::with_libraries(16 << 20, replaces).expect("16 MB are enough for a state");
        let function = engine.compile(text.as_bytes()).unwrap();
        (engine, function)
    });
    let mut rng = Rng::new(0x5EED);
    let mut errors = 0;
    for round in 0..40_000 {
        let arguments = arguments(&mut rng);
        let [ours, theirs] = engines.each_mut().map(|(engine, function)| {
            let mut host = Echo::new();
            let mut args = arguments.iter().map(Vec::as_slice);
            let result = engine.run(*function, &mut [].into_iter(), &mut args, &mut host);
            (result, host.reply.as_contiguous().unwrap_or_default().to_vec())
        });
        let shown = arguments.each_ref().map(|argument| argument.escape_ascii().to_string());
        assert_eq!(ours.0, theirs.0, "round {round}: {shown:?}");
        let [ours, theirs] = [ours, theirs].map(|(_, reply)| reply.escape_ascii().to_string());
        assert_eq!(ours, theirs, "round {round}: {shown:?}");
        errors += u32::from(ours.contains("boolean:false"));
    }
    assert!((4_000..20_000).contains(&errors), "{errors} errors of 40,000");
}

/// Single calls that take minutes or more in Lua's own functions, whatever a script counts.
const LONG: &[&str] = &[
    "return string.find(string.rep('a', 100000), string.rep('a-', 40) .. 'b')",
    "return string.match(string.rep('a', 100000), '(a*)*b' .. string.rep('.-', 30) .. 'c')",
    "return string.gsub(string.rep('a', 200000), '.-b', 'c')",
    "for _ in string.gmatch(string.rep('a', 200000), string.rep('a?', 30) .. 'b') do end",
    "return string.find(string.rep('(', 200000), '%b()')",
    "local t = {} for i = 1, 100000 do t[i] = i end return table.sort(t, string.rep) or #t",
    "table.insert({}, -2147483648, 1)",
    "local t = {1, 1, 1, 1} for i = 27, 0, -1 do t[5 * 2 ^ i] = 1 end table.remove(t, 1)",
    "local t = {1, 1, 1, 1} for i = 27, 0, -1 do t[5 * 2 ^ i] = 1 end table.foreachi(t, math.randomseed)",
    "local s = string.rep('x', 4000000) local t = {} for i = 1, 100000 do t[i] = s end table.sort(t)",
    "local t = {} for _ = 1, 60 do t = {t, t} end return #cjson.encode(t)",
    "local t = {} for i = 1, 100 do t[i] = 1 end for _ = 1, 14 do t = {t, t, t, t, t, t, t} end cmsgpack.pack(t)",
    "while true do collectgarbage() end",
    "local s = string.rep('x', 4000000) while true do s:upper() end",
    "local s = string.rep('x', 4000000) while true do local _ = s .. 'y' end",
];

#[test]
fn long_calls_end_with_their_script() {
    for text in LONG {
        let mut host = Echo::new();
        host.ticks_max = 20;
        let started = Instant::now();
        let result = run_with(&mut Engine::new(128 << 20).unwrap(), &mut host, text);
        assert_eq!(result, Err(Failure::Over), "{text}");
        assert!(started.elapsed() < Duration::from_secs(8), "{text} took {:?}", started.elapsed());
    }
}

/// What would take more memory than the script has ends it, whatever is in the state at that moment.
#[test]
fn what_is_built_counts_as_memory_of_the_script() {
    for text in [
        "local t = {} for _ = 1, 60 do t = {t, t} end return cjson.encode(t)",
        "local t = {} for i = 1, 64 do t[i] = 1e9 end for _ = 1, 14 do t = {t, t, t, t} end return cmsgpack.pack(t)",
        "local s = string.rep('x', 1e6) return string.gsub(s, '.', s)",
        "local s = string.rep('x', 5e6) redis.call('ECHO', s, s, s, s, s)",
        "local s = string.rep('x', 1e6) local t = {} for i = 1, 100 do t[i] = s end return table.concat(t)",
    ] {
        let mut engine = Engine::new(16 << 20).unwrap();
        assert_eq!(run_with(&mut engine, &mut Echo::new(), text), Err(Failure::Memory), "{text}");
        assert_eq!(run_with(&mut engine, &mut Echo::new(), "return 1"), Ok(":1\r\n".to_owned()), "after {text}");
    }
    // Caught, it takes nothing from what comes after it.
    let text = "local s = string.rep('x', 1e6) \
                for _ = 1, 30 do assert(not pcall(string.gsub, s, '.', s)) end \
                return #string.rep(s, 5)";
    assert_eq!(run_with(&mut Engine::new(16 << 20).unwrap(), &mut Echo::new(), text), Ok(":5000000\r\n".to_owned()));
}

/// Each nested repetition takes room on the processor's stack.
#[test]
fn patterns_of_any_length_end_in_errors() {
    for item in ["a?", "(", "a-", "a*"] {
        let text = format!("return string.find(string.rep('a', 100000), string.rep('{item}', 100000))");
        let error = raised(&text);
        assert!(error.contains("pattern too complex") || error.contains("too many captures"), "{item}: {error}");
    }
}
