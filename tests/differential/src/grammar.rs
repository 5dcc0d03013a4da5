//! The grammar of requests, as data: `grammar/FAMILY.txt` has a rule per line, `WEIGHT [tags] : RULE`.
//!
//! | In a rule | Means |
//! |---|---|
//! | `NX`, `'maxmemory'` | this word, in any case; this word as it is, with `\s` for a space and `\n` for a line end |
//! | `key`, `value`, `int` | a value of this class (see [`values`](crate::values)) |
//! | `[a]`, `(a \| b)`, `[a \| b]` | perhaps, one of, perhaps one of |
//! | `{[a] [b]}` | the parts in any order |
//! | `a...`, `(a b)...` | once or several times |
//! | `#(a b)...` | how often, then that often |
//!
//! The tag `valkey` keeps a rule out of rounds that Redis 7.0 takes part in: it does not have the command or option.

use crate::values::Class;

/// A part of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A word whose case does not matter.
    Word(String),
    /// A word that is sent as it is.
    Exact(String),
    /// A value of a class.
    Value(Class),
    /// One after the other.
    Sequence(Vec<Part>),
    /// Exactly one.
    OneOf(Vec<Part>),
    /// Once or not at all.
    Optional(Box<Part>),
    /// All, in any order.
    AnyOrder(Vec<Part>),
    /// Once or several times; with the number first if that is set.
    Repeated {
        /// What is repeated.
        part: Box<Part>,
        /// Whether the number of repetitions is an argument before the first.
        counted: bool,
    },
}

/// A line of a grammar.
#[derive(Clone, Debug)]
pub struct Rule {
    /// How often it is drawn, relative to the others.
    pub weight: u64,
    /// Whether Redis 7.0 has it.
    pub redis: bool,
    /// What it says.
    pub part: Part,
}

impl Rule {
    /// The first word of the command.
    pub fn command(&self) -> &str {
        match &self.part {
            Part::Sequence(parts) => match parts.first() {
                Some(Part::Word(word)) => word,
                _ => "",
            },
            Part::Word(word) => word,
            _ => "",
        }
    }
}

/// The families, each with its file. A family that lands adds its line here.
const FAMILIES: &[(&str, &str)] = &[
    ("string", include_str!("../grammar/string.txt")),
    ("bitmap", include_str!("../grammar/bitmap.txt")),
    ("hyperloglog", include_str!("../grammar/hyperloglog.txt")),
    ("list", include_str!("../grammar/list.txt")),
    ("zset", include_str!("../grammar/zset.txt")),
    ("stream", include_str!("../grammar/stream.txt")),
    ("geo", include_str!("../grammar/geo.txt")),
    ("generic", include_str!("../grammar/generic.txt")),
    ("hash", include_str!("../grammar/hash.txt")),
    ("set", include_str!("../grammar/set.txt")),
    ("sort", include_str!("../grammar/sort.txt")),
    ("transactions", include_str!("../grammar/transactions.txt")),
    ("connection", include_str!("../grammar/connection.txt")),
    ("pubsub", include_str!("../grammar/pubsub.txt")),
    ("server", include_str!("../grammar/server.txt")),
    ("acl", include_str!("../grammar/acl.txt")),
    ("scripting", include_str!("../grammar/scripting.txt")),
    ("functions", include_str!("../grammar/functions.txt")),
];

/// Families that are drawn only where they are named. Redis 7.0 lists users otherwise, so the stage names `acl` in a
/// run against Valkey alone. Scripts would change the draws of every other family, so the stage has a run of theirs.
const NAMED_ONLY: &[&str] = &["acl", "scripting", "functions"];

/// The names of all families.
pub fn families() -> Vec<String> {
    FAMILIES.iter().map(|(family, _)| (*family).to_owned()).collect()
}

/// The rules of the families named, or of all but [`NAMED_ONLY`] when none is.
///
/// # Errors
/// The first line that is no rule, or a family that does not exist.
pub fn load(families: &[String]) -> Result<Vec<Rule>, String> {
    if let Some(unknown) = families.iter().find(|name| !FAMILIES.iter().any(|(family, _)| family == name)) {
        return Err(format!("no family: {unknown}"));
    }
    let is_named = |family: &str| families.iter().any(|name| name == family);
    let wanted = |family: &str| if families.is_empty() { !NAMED_ONLY.contains(&family) } else { is_named(family) };
    let mut rules = Vec::new();
    for &(family, text) in FAMILIES.iter().filter(|(family, _)| wanted(family)) {
        for (number, line) in (1..).zip(text.lines()) {
            if !line.trim().is_empty() && !line.starts_with('#') {
                rules.push(rule(line).map_err(|error| format!("grammar/{family}.txt:{number}: {error}"))?);
            }
        }
    }
    Ok(rules)
}

fn rule(line: &str) -> Result<Rule, String> {
    let (head, body) = line.split_once(':').ok_or("a rule has a weight, a colon and its parts")?;
    let mut head = head.split_whitespace();
    let weight = head.next().and_then(|word| word.parse().ok()).ok_or("a rule begins with its weight")?;
    let redis = match head.next() {
        None => true,
        Some("valkey") => false,
        Some(tag) => return Err(format!("no tag: {tag}")),
    };
    let tokens = tokens(body);
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let part = parser.sequence()?;
    match parser.peek() {
        None => Ok(Rule { weight, redis, part }),
        Some(token) => Err(format!("unexpected {token}")),
    }
}

fn tokens(body: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for word in body.split_whitespace() {
        if word.len() > 1 && word.starts_with('\'') && word.ends_with('\'') {
            // Sent as it is, brackets included: a script.
            tokens.push(word.to_owned());
            continue;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let length = if rest.starts_with("...") {
                3
            } else {
                rest.find(['[', ']', '(', ')', '{', '}', '|', '#', '.']).map_or(rest.len(), |at| at.max(1))
            };
            tokens.push(rest[..length].to_owned());
            rest = &rest[length..];
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [String],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("missing {token}")) }
    }

    /// Parts up to a closing bracket, a bar or the end.
    fn parts(&mut self) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        while self.peek().is_some_and(|token| ![")", "]", "}", "|"].contains(&token)) {
            parts.push(self.repeated()?);
        }
        Ok(parts)
    }

    fn sequence(&mut self) -> Result<Part, String> {
        let mut parts = self.parts()?;
        Ok(if parts.len() == 1 { parts.remove(0) } else { Part::Sequence(parts) })
    }

    fn choice(&mut self) -> Result<Part, String> {
        let mut choices = vec![self.sequence()?];
        while self.take("|") {
            choices.push(self.sequence()?);
        }
        Ok(if choices.len() == 1 { choices.remove(0) } else { Part::OneOf(choices) })
    }

    fn repeated(&mut self) -> Result<Part, String> {
        let counted = self.take("#");
        let part = self.part()?;
        if self.take("...") {
            Ok(Part::Repeated { part: Box::new(part), counted })
        } else if counted {
            Err("# counts what is repeated".to_owned())
        } else {
            Ok(part)
        }
    }

    fn part(&mut self) -> Result<Part, String> {
        let token = self.peek().ok_or("a part is missing")?.to_owned();
        self.at += 1;
        match token.as_str() {
            "(" => {
                let part = self.choice()?;
                self.expect(")")?;
                Ok(part)
            }
            "[" => {
                let part = self.choice()?;
                self.expect("]")?;
                Ok(Part::Optional(Box::new(part)))
            }
            "{" => {
                let parts = self.parts()?;
                self.expect("}")?;
                Ok(Part::AnyOrder(parts))
            }
            word => {
                if let Some(exact) = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
                    Ok(Part::Exact(exact.replace("\\n", "\n").replace("\\s", " ")))
                } else if word.bytes().any(|byte| byte.is_ascii_lowercase()) {
                    Class::from_name(word).map(Part::Value).ok_or_else(|| format!("no class of values: {word}"))
                } else {
                    Ok(Part::Word(word.to_owned()))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grammar_of_the_project_parses() {
        let rules = load(&[]).expect("the grammars parse");
        assert!(rules.iter().all(|rule| !rule.command().is_empty()));
        assert!(load(&["no-such".to_owned()]).is_err());
    }

    #[test]
    fn rules_read_as_the_table_says() {
        let parsed = rule("3 valkey : SET key [NX | XX] {[GET] [EX ttl]} #(key value)...").expect("a rule");
        assert_eq!((parsed.weight, parsed.redis, parsed.command()), (3, false, "SET"));
        let Part::Sequence(parts) = parsed.part else { panic!("not a sequence") };
        assert!(matches!(&parts[2], Part::Optional(part) if matches!(&**part, Part::OneOf(words) if words.len() == 2)));
        assert!(matches!(&parts[3], Part::AnyOrder(parts) if parts.len() == 2));
        assert!(matches!(&parts[4], Part::Repeated { counted: true, .. }));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for line in ["GET key", "1 : GET [key", "1 : GET keyy", "1 other : GET key", "1 : GET #key", "1 : GET )"] {
            assert!(rule(line).is_err(), "{line}");
        }
    }
}
