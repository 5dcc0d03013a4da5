//! Part `threads`: the thread experiment of CP-Redis (Sung and Park, 2019): 1, 3 and 5 million pairs of 16 B and 1 KB,
//! saved by 1 to 16 threads, and loaded again. Servers without such a setting are measured once for each data set.

use super::checkpoint;
use super::snapshot::restart;
use super::{Data, KIB, LOG_OFF, cells, push, section, settle_disk, start};
use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::error::Result;
use loadgen::payload::Content;
use loadgen::results::{Better, Section};
use loadgen::server::{Server, ServerSpec};

const MILLIONS: [u64; 3] = [1, 3, 5];
const THREADS: [u32; 5] = [1, 2, 4, 8, 16];
const SETTING: &str = "checkpoint-threads";

/// Waits for the end of a server's background work.
type Settle<'s> = dyn Fn(&Harness<'_>, &Server) -> Result<()> + 's;

/// Seconds by server: row title, server, checkpoint, its CPU, restart.
struct Figure {
    title: String,
    server: String,
    checkpoint: f64,
    cpu: f64,
    restart: f64,
}

/// Measures them with values of this content. Calls `settle` when a server has been filled.
pub(crate) fn run(
    harness: &mut Harness<'_>,
    specs: &[ServerSpec],
    content: &Content,
    settle: &Settle<'_>,
) -> Result<Vec<Section>> {
    harness.steps.expect(MILLIONS.len() * specs.len() * (2 + THREADS.len()));
    let (mut titles, mut figures) = (Vec::new(), Vec::new());
    for millions in MILLIONS {
        let keys = harness.scaled(millions * 1_000_000);
        let data = Data::new(keys, KIB, content.clone());
        let title = |how: String| format!("{:.3} M keys, {how}", keys as f64 / 1e6);
        titles.push(title(how(None)));
        titles.extend(THREADS.map(|threads| title(how(Some(threads)))));
        for spec in specs {
            measure(harness, spec, &data, settle, &title, &mut figures)?;
        }
    }
    let about = "16 B keys and 1 KB values, nothing else going on, no core fixed.";
    type Column = (&'static str, fn(&Figure) -> f64);
    let tables: [Column; 3] = [
        ("Time of a checkpoint by its threads", |figure| figure.checkpoint),
        ("CPU time of a checkpoint by its threads", |figure| figure.cpu),
        ("Time of a restart from such a checkpoint", |figure| figure.restart),
    ];
    let mut sections = Vec::new();
    for (heading, value) in tables {
        let mut table = section(heading, about.to_owned(), "s", Better::Lower);
        for title in &titles {
            let of_row = figures.iter().filter(|figure| figure.title == *title);
            let row = cells(of_row.map(|figure| (figure.server.as_str(), vec![value(figure)])));
            push(harness, &mut table, title.clone(), row);
        }
        sections.push(table);
    }
    Ok(sections)
}

fn how(threads: Option<u32>) -> String {
    match threads {
        None => "as it is".to_owned(),
        Some(1) => "1 thread".to_owned(),
        Some(threads) => format!("{threads} threads"),
    }
}

/// One server with one data set: without the setting, then with each number of threads if it has the setting.
fn measure(
    harness: &mut Harness<'_>,
    spec: &ServerSpec,
    data: &Data,
    settle: &Settle<'_>,
    title: &dyn Fn(String) -> String,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let mut server = start(harness, spec, LOG_OFF, false)?;
    data.load(harness, &server)?;
    settle(harness, &server)?;
    let setting = Client::connect(&server.target.address, &server.target.login)?.setting(SETTING)?;
    let counts = setting.is_some().then_some(THREADS).into_iter().flatten();
    for threads in std::iter::once(None).chain(counts.map(Some)) {
        harness.steps.say(&format!("{}, {} keys: {}", spec.name, data.keys, how(threads)));
        if let Some(threads) = threads {
            // A restart forgets the setting, so set it each time.
            let mut client = Client::connect(&server.target.address, &server.target.login)?;
            client.must(&["CONFIG", "SET", SETTING, &threads.to_string()])?;
        }
        settle_disk(harness);
        let saved = checkpoint::take(&server)?;
        let back = restart(&mut server, data.keys)?;
        figures.push(Figure {
            title: title(how(threads)),
            server: spec.name.clone(),
            checkpoint: saved.seconds,
            cpu: saved.cpu_seconds,
            restart: back.seconds,
        });
    }
    Ok(())
}
