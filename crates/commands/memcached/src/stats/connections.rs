//! `stats conns`: the connections of the server, of clients of every dialect.

use super::line;
use command::Ctx;
use command::clients::{Address, ClientInfo};

/// `stats conns`
pub fn lines(ctx: &mut Ctx<'_>) {
    let settings = ctx.host.configuration.current();
    for (number, address) in settings.bind.iter().enumerate() {
        let mut show = |name: &str, value: &str| line(ctx, &format!("listener{number}:{name}"), value);
        show("addr", &format!("tcp:{address}:{}", settings.memcached_port));
        show("state", "conn_listening");
    }
    let (own, now) = (ctx.session.info.id, ctx.now());
    for client in ctx.host.clients.all() {
        let mut show = |name: &str, value: String| line(ctx, &format!("{}:{name}", client.id), value);
        show("addr", shown(&client.address));
        show("listen_addr", shown(&client.local_address));
        show("state", state(&client, own).to_owned());
        show("secs_since_last_cmd", client.idle_seconds(now).to_string());
    }
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("tcp:{address}"),
        Address::Unix(path) => format!("unix:{path}"),
    }
}

/// The state of memcached that is nearest.
fn state(client: &ClientInfo, own: u64) -> &'static str {
    match client {
        _ if client.id == own => "conn_parse_cmd",
        _ if client.is_blocked() => "conn_io_queue",
        _ => "conn_read",
    }
}
