//! What FUNCTION does with libraries.
//!
//! A library is compiled before it is stored, so that what is stored registers functions. Libraries change under all
//! locks; each change is an effect of the command's record.

use crate::cache::Scripts;
use crate::libraries::{Compiled, Library, compile, forget};
use crate::lua::Engine;
use crate::metadata;
use crate::run::with_libraries;
use command::error::up_to_zero;
use command::{Ctx, Stop};
use engine::Effect;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of all libraries of a payload, expanded.
const RESTORED_BYTES_MAX: u64 = 128 << 20;

/// What a subcommand with too many arguments answers.
fn wrong_arguments(name: &str) -> Stop {
    let text = format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP.");
    Stop::error_with(text)
}

fn already_exists(name: &[u8]) -> Stop {
    Stop::error_with([b"ERR Library '", name, b"' already exists"].concat())
}

fn function_exists(name: &[u8]) -> Stop {
    Stop::error_with([b"ERR Function ", name, b" already exists"].concat())
}

fn exists(ctx: &mut Ctx<'_>, name: &[u8]) -> bool {
    ctx.ks.libraries().is_some_and(|libraries| libraries.get(name).is_some())
}

/// FUNCTION LOAD.
pub fn load(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let last = ctx.args.len() - 1;
    for place in 2..last {
        if !ctx.is_word(place, "replace") {
            return Err(Stop::error_with([b"ERR Unknown option given: ", up_to_zero(&ctx.args[place])].concat()));
        }
    }
    let code: Arc<[u8]> = ctx.args[last].into();
    let name = metadata::read(&code)?.name;
    if last == 2 && exists(ctx, &name) {
        return Err(already_exists(&name));
    }
    with_libraries(ctx, |ctx, engine, compiled| {
        let (name, library) = compile(engine, &code)?;
        if let Some(taken) = taken_function(compiled, &library, |other| other == name) {
            forget(engine, library.functions);
            return Err(function_exists(&taken));
        }
        store(ctx, engine, compiled, [(name.clone(), library)].into());
        ctx.reply.bulk(&name);
        Ok(())
    })
}

/// A function of the library whose name another library has, except those that are replaced.
fn taken_function(compiled: &Compiled, library: &Library, is_replaced: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let is_taken = |name: &[u8]| compiled.library_of(name).is_some_and(|other| !is_replaced(other));
    library.functions.iter().find(|function| is_taken(&function.name)).map(|function| function.name.clone())
}

/// Stores libraries, replacing those of the same names.
fn store(ctx: &mut Ctx<'_>, engine: &mut Engine, compiled: &mut Compiled, libraries: BTreeMap<Vec<u8>, Library>) {
    for (name, library) in &libraries {
        ctx.ks.apply(&Effect::Library { name, code: &library.code });
    }
    if let Some(now) = ctx.ks.libraries() {
        compiled.adopt(engine, &now, libraries);
    }
}

/// FUNCTION DELETE.
pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let name = ctx.args[2].to_vec();
    if !exists(ctx, &name) {
        return Err(Stop::error("ERR Library not found"));
    }
    ctx.ks.apply(&Effect::Library { name: &name, code: b"" });
    ctx.reply.ok();
    Ok(())
}

/// FUNCTION FLUSH.
pub fn flush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len() > 3 {
        return Err(wrong_arguments(&String::from_utf8_lossy(&ctx.args[1])));
    }
    if ctx.args.len() == 3 && !ctx.is_word(2, "sync") && !ctx.is_word(2, "async") {
        return Err(Stop::error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    remove_all(ctx);
    ctx.reply.ok();
    Ok(())
}

fn remove_all(ctx: &mut Ctx<'_>) {
    let libraries = ctx.ks.libraries().unwrap_or_default();
    libraries.iter().for_each(|(name, _)| ctx.ks.apply(&Effect::Library { name, code: b"" }));
}

/// FUNCTION LIST.
pub fn list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut pattern, mut with_code, mut place) = (None, false, 2);
    while place < ctx.args.len() {
        if !with_code && ctx.is_word(place, "withcode") {
            with_code = true;
        } else if pattern.is_none() && ctx.is_word(place, "libraryname") {
            place += 1;
            let Some(bytes) = ctx.args.bytes(place) else {
                return Err(Stop::error("ERR library name argument was not given"));
            };
            pattern = Some(bytes.to_vec());
        } else {
            return Err(Stop::error_with([b"ERR Unknown argument ", up_to_zero(&ctx.args[place])].concat()));
        }
        place += 1;
    }
    with_libraries(ctx, |ctx, _, compiled| {
        let is_wanted =
            |name: &[u8]| pattern.as_ref().is_none_or(|pattern| base::glob::matches_ignore_case(pattern, name));
        let wanted: Vec<_> = compiled.iter().filter(|(name, _)| is_wanted(name)).collect();
        ctx.reply.array(wanted.len());
        wanted.into_iter().for_each(|(name, library)| describe(ctx, name, library, with_code));
        Ok(())
    })
}

fn describe(ctx: &mut Ctx<'_>, name: &[u8], library: &Library, with_code: bool) {
    ctx.reply.map(if with_code { 4 } else { 3 });
    ctx.reply.bulk(b"library_name");
    ctx.reply.bulk(name);
    ctx.reply.bulk(b"engine");
    ctx.reply.bulk(b"LUA");
    ctx.reply.bulk(b"functions");
    ctx.reply.array(library.functions.len());
    for function in &library.functions {
        ctx.reply.map(3);
        ctx.reply.bulk(b"name");
        ctx.reply.bulk(&function.name);
        ctx.reply.bulk(b"description");
        match &function.description {
            Some(description) => ctx.reply.bulk(description),
            None => ctx.reply.null(),
        }
        ctx.reply.bulk(b"flags");
        ctx.reply.set(function.flags.names().count());
        function.flags.names().for_each(|flag| ctx.reply.simple(flag));
    }
    if with_code {
        ctx.reply.bulk(b"library_code");
        ctx.reply.bulk(&library.code);
    }
}

/// FUNCTION DUMP.
pub fn dump(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let libraries = ctx.ks.libraries().unwrap_or_default();
    let payload = rdb::dump::write_functions(libraries.iter().map(|(_, code)| &**code));
    ctx.reply.bulk(&payload);
    Ok(())
}

/// What FUNCTION RESTORE does with the libraries that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// They go.
    Flush,
    /// They stay, and none has a name of the payload.
    Append,
    /// Those with names of the payload are replaced.
    Replace,
}

fn policy(ctx: &Ctx<'_>) -> Result<Policy, Stop> {
    let words = [("flush", Policy::Flush), ("append", Policy::Append), ("replace", Policy::Replace)];
    match ctx.args.len() {
        3 => Ok(Policy::Append),
        4 => words
            .iter()
            .find(|(word, _)| ctx.is_word(3, word))
            .map(|(_, policy)| *policy)
            .ok_or(Stop::error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")),
        _ => Err(wrong_arguments(&String::from_utf8_lossy(&ctx.args[1]))),
    }
}

/// FUNCTION RESTORE.
pub fn restore(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let policy = policy(ctx)?;
    let codes = rdb::dump::read_functions(&ctx.args[2], RESTORED_BYTES_MAX).map_err(|error| match error {
        rdb::dump::FunctionsError::Footer => Stop::error("ERR DUMP payload version or checksum are wrong"),
        rdb::dump::FunctionsError::OtherType => Stop::error("ERR given type is not a function"),
        rdb::dump::FunctionsError::Damaged => Stop::error("ERR failed loading the given functions payload"),
    })?;
    with_libraries(ctx, |ctx, engine, compiled| {
        let mut restored = BTreeMap::new();
        let checked = take_restored(engine, codes, &mut restored)
            .and_then(|()| if policy == Policy::Flush { Ok(()) } else { join(compiled, &restored, policy) });
        if let Err(stop) = checked {
            restored.into_values().for_each(|library| forget(engine, library.functions));
            return Err(stop);
        }
        if policy == Policy::Flush {
            remove_all(ctx);
        }
        store(ctx, engine, compiled, restored);
        ctx.reply.ok();
        Ok(())
    })
}

/// Compiles the libraries of a payload, and checks that each name is there once.
fn take_restored(
    engine: &mut Engine,
    codes: Vec<Vec<u8>>,
    restored: &mut BTreeMap<Vec<u8>, Library>,
) -> Result<(), Stop> {
    let mut names = std::collections::HashSet::new();
    for code in codes {
        let code: Arc<[u8]> = code.into();
        let name = metadata::read(&code)?.name;
        if restored.contains_key(&name) {
            return Err(already_exists(&name));
        }
        let (name, library) = compile(engine, &code)?;
        let own: Vec<_> = library.functions.iter().map(|function| function.name.to_ascii_lowercase()).collect();
        let fault = own.iter().find(|name| names.contains(*name)).map(|name| function_exists(name));
        names.extend(own);
        restored.insert(name, library);
        fault.map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// Checks that libraries of a payload do not conflict with those that stay.
fn join(compiled: &Compiled, restored: &BTreeMap<Vec<u8>, Library>, policy: Policy) -> Result<(), Stop> {
    if policy == Policy::Append
        && let Some((name, _)) = compiled.iter().find(|(name, _)| restored.contains_key(*name))
    {
        return Err(Stop::error_with([b"ERR Library ", name, b" already exists"].concat()));
    }
    let is_replaced = |name: &[u8]| restored.contains_key(name);
    let taken = restored.values().find_map(|library| taken_function(compiled, library, is_replaced));
    taken.map_or(Ok(()), |name| Err(function_exists(&name)))
}

/// FUNCTION STATS.
pub fn stats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let running = ctx.host.part::<crate::Needed, Arc<Scripts>>().running.running_function()?;
    let (libraries, functions) =
        with_libraries(ctx, |_, _, compiled| Ok((compiled.iter().len(), compiled.function_count())))?;
    ctx.reply.map(2);
    ctx.reply.bulk(b"running_script");
    match running {
        None => ctx.reply.null(),
        Some(running) => {
            ctx.reply.map(3);
            ctx.reply.bulk(b"name");
            ctx.reply.bulk(&running.name);
            ctx.reply.bulk(b"command");
            ctx.reply.array(running.command.len());
            running.command.iter().for_each(|word| ctx.reply.bulk(word));
            ctx.reply.bulk(b"duration_ms");
            ctx.reply.integer(i64::try_from(running.since.elapsed().as_millis()).unwrap_or(i64::MAX));
        }
    }
    ctx.reply.bulk(b"engines");
    ctx.reply.map(1);
    ctx.reply.bulk(b"LUA");
    ctx.reply.map(2);
    ctx.reply.bulk(b"libraries_count");
    ctx.reply.integer(i64::try_from(libraries).unwrap_or(i64::MAX));
    ctx.reply.bulk(b"functions_count");
    ctx.reply.integer(i64::try_from(functions).unwrap_or(i64::MAX));
    Ok(())
}
