//! Searches in an index of places.

use super::geo::{READ_KEY, UNIT, is_word, point, reply_distance, reply_point, unit};
use crate::error::{self, Stop, check_reply};
use crate::spec::{Argument, Docs};
use crate::work::reply::{self, PIECE_BYTES};
use crate::work::thread::Operand;
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::{Key, SharedBig};
use proto::ReplyBuffer;
use types::collection::Made;
use types::geo::{Found, Order, Point, Shape, Wanted, looked_at, position, search};
use types::zset::{Entry, NewSet, View, parse_score};
use value::{Big, Stored, reaper};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&GEOSEARCH, &GEOSEARCHSTORE];

const COMPLEXITY: &str = "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the \
                          shape provided as the filter and M is the number of items inside the shape";

const FROM: Argument = Argument::one_of(
    "from",
    &[
        Argument::string("member").after("FROMMEMBER"),
        Argument::block("fromlonlat", &[Argument::double("longitude"), Argument::double("latitude")])
            .after("FROMLONLAT"),
    ],
);

const BY: Argument = Argument::one_of(
    "by",
    &[
        Argument::block("circle", &[Argument::double("radius").after("BYRADIUS"), UNIT]),
        Argument::block("box", &[Argument::double("width").after("BYBOX"), Argument::double("height"), UNIT]),
        Argument::block(
            "polygon",
            &[
                Argument::integer("num-vertices").after("BYPOLYGON"),
                Argument::block("vertices", &[Argument::double("longitude"), Argument::double("latitude")]).repeated(),
            ],
        )
        .since("9.0.0"),
    ],
);

/// In which order.
pub(super) const ORDER: Argument =
    Argument::one_of("order", &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")]);

const COUNT: Argument = Argument::block(
    "count-block",
    &[Argument::integer("count").after("COUNT"), Argument::word("any", "ANY").optional()],
);

/// What the reply contains for each member.
pub(super) const WITHCOORD: Argument = Argument::word("withcoord", "WITHCOORD");
pub(super) const WITHDIST: Argument = Argument::word("withdist", "WITHDIST");
pub(super) const WITHHASH: Argument = Argument::word("withhash", "WITHHASH");

static GEOSEARCH: CommandSpec = CommandSpec {
    name: "geosearch",
    arity: -7,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the members of an index that lie within a circle, a box or a polygon.",
        since: "6.2.0",
        group: "geo",
        complexity: COMPLEXITY,
        history: &[("7.0.0", "Takes units in capitals."), ("9.0.0", "Takes `BYPOLYGON`.")],
        arguments: &[
            Argument::key("key", 0),
            FROM.optional(),
            BY,
            ORDER.optional(),
            COUNT.optional(),
            WITHCOORD.optional(),
            WITHDIST.optional(),
            WITHHASH.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::Search { stores: false })),
};

static GEOSEARCHSTORE: CommandSpec = CommandSpec {
    name: "geosearchstore",
    arity: -8,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::GEO,
    keys: &[
        KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE)),
        KeySpec::one(2, KeyFlags::RO.union(KeyFlags::ACCESS)),
    ],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores the members of an index that lie within a circle, a box or a polygon.",
        since: "6.2.0",
        group: "geo",
        complexity: COMPLEXITY,
        history: &[("7.0.0", "Takes units in capitals."), ("9.0.0", "Takes `BYPOLYGON`.")],
        arguments: &[
            Argument::key("destination", 0),
            Argument::key("source", 1),
            FROM.optional(),
            BY,
            ORDER.optional(),
            COUNT.optional(),
            Argument::word("storedist", "STOREDIST").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(|ctx| run(ctx, Form::Search { stores: true })),
};

/// Which command it is: where its arguments stand, and which it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// GEOSEARCH, and GEOSEARCHSTORE, whose first key is where it stores.
    Search {
        /// Whether it stores.
        stores: bool,
    },
    /// GEORADIUS: a place, a radius and its unit after the key.
    Around {
        /// Whether it may store.
        may_store: bool,
    },
    /// GEORADIUSBYMEMBER: a member, a radius and its unit after the key.
    AroundMember {
        /// Whether it may store.
        may_store: bool,
    },
}

impl Form {
    fn source_at(self) -> usize {
        if self == (Self::Search { stores: true }) { 2 } else { 1 }
    }

    /// Where options begin.
    fn options_at(self) -> usize {
        match self {
            Self::Search { .. } => self.source_at().saturating_add(1),
            Self::Around { .. } => 6,
            Self::AroundMember { .. } => 5,
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Self::Search { .. })
    }

    /// The event of a store.
    fn event(self) -> &'static str {
        if self.is_search() { "geosearchstore" } else { "georadiusstore" }
    }
}

/// What a request asks for.
#[derive(Default)]
struct Query {
    /// The centre, as far as it is known: a member of an absent index is nowhere.
    center: Option<Point>,
    /// FROMMEMBER was given.
    is_member: bool,
    /// FROMLONLAT was given.
    is_placed: bool,
    reach: Option<Reach>,
    /// Metres in the unit asked for.
    unit: f64,
    wanted: Wanted,
    with_distance: bool,
    with_hash: bool,
    with_point: bool,
    /// Where the key stands to store at.
    store_at: Option<usize>,
    stores_distance: bool,
}

/// How far a search goes, in metres.
#[derive(Clone)]
enum Reach {
    Circle(f64),
    Box(f64, f64),
    Polygon(Vec<Point>),
}

impl Query {
    /// Reads the request; of an absent index there is no view.
    fn parse(args: Args<'_>, form: Form, view: Option<&View<'_>>) -> Result<Self, Stop> {
        let mut query = Self { unit: 1.0, ..Self::default() };
        match form {
            Form::Search { stores } => query.store_at = stores.then_some(1),
            Form::Around { .. } => {
                query.center = Some(point(args, 2)?);
                query.read_circle(args, 4)?;
            }
            // Without an index Valkey looks at neither member nor radius.
            Form::AroundMember { .. } => {
                if let Some(view) = view {
                    query.center = Some(member(view, &args[2])?);
                    query.read_circle(args, 3)?;
                }
            }
        }
        let mut at = form.options_at();
        while at < args.len() {
            at = query.read_option(args, form, view, at)?;
        }
        query.check(args, form)?;
        Ok(query)
    }

    /// Reads the option at `at`, and gives the place of the next one.
    fn read_option(&mut self, args: Args<'_>, form: Form, view: Option<&View<'_>>, at: usize) -> Result<usize, Stop> {
        let behind = |count: usize| at.saturating_add(count);
        let is = |word: &str, values: usize| is_word(args, at, word) && behind(values) < args.len();
        let is_polygon = matches!(self.reach, Some(Reach::Polygon(_)));
        let is_round = matches!(self.reach, None | Some(Reach::Circle(_)));
        let is_box = matches!(self.reach, None | Some(Reach::Box(..)));
        let may_store = matches!(form, Form::Around { may_store: true } | Form::AroundMember { may_store: true });
        if is("withdist", 0) {
            self.with_distance = true;
        } else if is("withhash", 0) {
            self.with_hash = true;
        } else if is("withcoord", 0) {
            self.with_point = true;
        } else if is("any", 0) {
            self.wanted.any = true;
        } else if is("asc", 0) {
            self.wanted.order = Some(Order::Nearest);
        } else if is("desc", 0) {
            self.wanted.order = Some(Order::Farthest);
        } else if is("count", 1) {
            let count = integer(args, behind(1))?;
            let positive = usize::try_from(count).ok().filter(|count| *count > 0);
            self.wanted.count = Some(positive.ok_or(Stop::error("ERR COUNT must be > 0"))?);
            return Ok(behind(2));
        } else if may_store && (is("store", 1) || is("storedist", 1)) {
            self.store_at = Some(behind(1));
            self.stores_distance = is("storedist", 1);
            return Ok(behind(2));
        } else if form == (Form::Search { stores: true }) && is("storedist", 0) {
            self.stores_distance = true;
        } else if !form.is_search() {
            return Err(error::SYNTAX);
        } else if is("frommember", 1) && !self.is_placed && !is_polygon {
            self.is_member = true;
            if let Some(view) = view {
                self.center = Some(member(view, &args[behind(1)])?);
            }
            return Ok(behind(2));
        } else if is("fromlonlat", 2) && !self.is_member && !is_polygon {
            self.is_placed = true;
            self.center = Some(point(args, behind(1))?);
            return Ok(behind(3));
        } else if is("byradius", 2) && is_round {
            self.read_circle(args, behind(1))?;
            return Ok(behind(3));
        } else if is("bybox", 3) && is_box {
            self.read_box(args, behind(1))?;
            return Ok(behind(4));
        } else if is("bypolygon", 2) && (is_polygon || self.reach.is_none()) && !self.is_member && !self.is_placed {
            return self.read_polygon(args, behind(1));
        } else {
            return Err(error::SYNTAX);
        }
        Ok(behind(1))
    }

    /// Reads a radius and its unit.
    fn read_circle(&mut self, args: Args<'_>, at: usize) -> Result<(), Stop> {
        let radius = parse_score(&args[at]).ok_or(Stop::error("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(Stop::error("ERR radius cannot be negative"));
        }
        self.unit = unit(args, at.saturating_add(1))?;
        self.reach = Some(Reach::Circle(radius * self.unit));
        Ok(())
    }

    /// Reads a width, a height and their unit.
    fn read_box(&mut self, args: Args<'_>, at: usize) -> Result<(), Stop> {
        let width = parse_score(&args[at]).ok_or(Stop::error("ERR need numeric width"))?;
        let height = &args[at.saturating_add(1)];
        let height = parse_score(height).ok_or(Stop::error("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(Stop::error("ERR height or width cannot be negative"));
        }
        self.unit = unit(args, at.saturating_add(2))?;
        self.reach = Some(Reach::Box(width * self.unit, height * self.unit));
        Ok(())
    }

    /// Reads how many vertices there are, and these; gives the place after them.
    fn read_polygon(&mut self, args: Args<'_>, at: usize) -> Result<usize, Stop> {
        let number = integer(args, at).ok().and_then(|number| i32::try_from(number).ok());
        let number = number.ok_or(Stop::error("ERR invalid number of vertices"))?;
        let start = at.saturating_add(1);
        let given = args.len().saturating_sub(start) / 2;
        let count = usize::try_from(number).ok().filter(|count| (3..=given).contains(count));
        let count = count.ok_or(Stop::error("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
        let end = start.saturating_add(count.saturating_mul(2));
        let vertices = (start..end).step_by(2).map(|at| point(args, at)).collect::<Result<_, _>>()?;
        self.unit = 1.0;
        self.reach = Some(Reach::Polygon(vertices));
        Ok(end)
    }

    /// Whether the options go together.
    fn check(&mut self, args: Args<'_>, form: Form) -> Result<(), Stop> {
        if self.store_at.is_some() && (self.with_distance || self.with_hash || self.with_point) {
            let command = if form.is_search() { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(Stop::error_with(format!(
                "ERR {command} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let needs_center = !matches!(self.reach, Some(Reach::Polygon(_)));
        if form.is_search() && needs_center && !self.is_member && !self.is_placed {
            let text = "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ";
            return Err(error::repeating(text, &args[0], ""));
        }
        if form.is_search() && self.reach.is_none() {
            let text = "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for ";
            return Err(error::repeating(text, &args[0], ""));
        }
        if self.wanted.any && self.wanted.count.is_none() {
            return Err(Stop::error("ERR the ANY argument requires COUNT argument"));
        }
        if self.wanted.count.is_some() && !self.wanted.any && self.wanted.order.is_none() {
            // Which ones are not said otherwise: the nearest.
            self.wanted.order = Some(Order::Nearest);
        }
        Ok(())
    }

    /// The shape to search in; `None` of an absent index.
    fn shape(&self) -> Option<Shape> {
        Some(match self.reach.clone()? {
            Reach::Circle(radius) => Shape::Circle { center: self.center?, radius },
            Reach::Box(width, height) => Shape::Box { center: self.center?, width, height },
            Reach::Polygon(vertices) => Shape::polygon(vertices),
        })
    }
}

/// Where a member is.
fn member(view: &View<'_>, member: &[u8]) -> Result<Point, Stop> {
    position(view, member).ok_or_else(|| error::repeating("ERR member ", member, " does not exist"))
}

fn integer(args: Args<'_>, index: usize) -> Result<i64, Stop> {
    types::string::parse_integer(&args[index]).ok_or(error::NOT_INTEGER)
}

/// Runs a search.
pub(super) fn run(ctx: &mut Ctx<'_>, form: Form) -> Result<(), Stop> {
    let (args, key) = (ctx.args, ctx.key(form.source_at()));
    if let Some(tree) = super::zset::peek_tree(ctx, &key)? {
        let view = View::of(Stored::Big(&tree));
        let query = Query::parse(args, form, Some(&view))?;
        if let Some(shape) = query.shape().filter(|shape| query.is_long(&view, shape)) {
            return run_long(ctx, form, &key, tree.clone(), query, shape);
        }
    }
    let view = types::zset::read(ctx.ks, &key)?;
    let query = Query::parse(args, form, view.as_ref())?;
    let found = match (&view, query.shape()) {
        (Some(view), Some(shape)) => search(view, &shape, query.wanted),
        _ => Vec::new(),
    };
    let Some(store_at) = query.store_at else { return query.reply(ctx.reply, &found) };
    let score = |found: &Found<'_>| if query.stores_distance { found.distance / query.unit } else { found.score };
    let entries: NewSet = found.iter().map(|found| (score(found), found.member.to_vec())).collect();
    let to = ctx.key(store_at);
    let is_there = ctx.ks.peek_head(&to)?.is_some();
    let count = types::zset::store(ctx.ks, &to, is_there, &entries, form.event());
    ctx.reply.integer(count as i64);
    Ok(())
}

/// A search is long when it visits, or finds and returns, more members than this.
const AT_ONCE_MAX: u64 = 8192;

/// Members found, and how far each is from the centre.
struct Hits(Vec<(u64, f64)>);

/// A search that another thread does.
fn run_long(
    ctx: &mut Ctx<'_>,
    form: Form,
    key: &Key<'_>,
    tree: SharedBig,
    query: Query,
    shape: Shape,
) -> Result<(), Stop> {
    let (operand, wanted, index) = (Operand::Tree(tree.clone()), query.wanted, tree.clone());
    let Some(store_at) = query.store_at else {
        let hits = ctx.made_elsewhere(operand, move || {
            let found = search(&View::of(Stored::Big(&index)), &shape, wanted);
            Hits(found.iter().map(|found| (found.rank, found.distance)).collect())
        })?;
        // A client's read.
        types::zset::read(ctx.ks, key)?;
        ctx.reply.array(hits.0.len());
        return ctx.reply_long(Replying { hits, told: 0, tree, query });
    };
    let distance_unit = query.stores_distance.then_some(query.unit);
    let made = ctx.made_elsewhere(operand, move || {
        let Big::Zset(big) = &*index else { return None };
        let mut stored = big.empty_alike();
        for found in search(&View::of(Stored::Big(&index)), &shape, wanted) {
            let score = distance_unit.map_or(found.score, |unit| found.distance / unit);
            stored.add(&Entry { score, member: found.member });
        }
        Some(Made::of_tree(Big::Zset(stored)))
    })?;
    types::zset::read(ctx.ks, key)?;
    let to = ctx.key(store_at);
    let is_there = ctx.ks.peek_head(&to)?.is_some();
    if let Some(tree) = made.as_ref().and_then(Made::tree) {
        let count = types::zset::store_made(ctx.ks, &to, is_there, tree, form.event());
        ctx.reply.integer(count as i64);
    }
    Ok(())
}

/// What a long search has found, on its way to a client.
struct Replying {
    hits: Hits,
    told: usize,
    tree: SharedBig,
    query: Query,
}

/// Members written between two looks at the size of a piece.
const TOLD_AT_ONCE: usize = 64;

/// The most members of a piece: each is a way through the tree.
const PIECE_MEMBERS_MAX: usize = 256;

impl reply::LongReply for Replying {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let (start, view) = (reply.len(), View::of(Stored::Big(&self.tree)));
        let first = self.told;
        while let Some(rest) = self.hits.0.get(self.told..).filter(|rest| !rest.is_empty()) {
            let is_full = self.told.saturating_sub(first) >= PIECE_MEMBERS_MAX;
            if is_full || reply.len().saturating_sub(start) >= PIECE_BYTES {
                return true;
            }
            let some = rest.iter().take(TOLD_AT_ONCE);
            self.told = self.told.saturating_add(some.len());
            let found = some.filter_map(|(rank, distance)| Found::at(&view, *rank, *distance));
            found.for_each(|found| self.query.reply_one(reply, &found));
        }
        false
    }

    fn held_bytes(&self) -> usize {
        let hits = self.hits.0.capacity().saturating_mul(size_of::<(u64, f64)>());
        reply::held_bytes(&self.tree).saturating_add(hits)
    }
}

impl Drop for Hits {
    fn drop(&mut self) {
        if self.0.len() as u64 > AT_ONCE_MAX {
            reaper::free(Box::new(std::mem::take(&mut self.0)));
        }
    }
}

impl Query {
    /// Whether the search looks at many members.
    fn is_long(&self, view: &View<'_>, shape: &Shape) -> bool {
        let ends_soon = self.wanted.any && self.wanted.count.is_some_and(|count| (count as u64) < AT_ONCE_MAX / 8);
        !ends_soon && looked_at(view, shape) > AT_ONCE_MAX
    }

    fn reply(&self, reply: &mut ReplyBuffer, found: &[Found<'_>]) -> Result<(), Stop> {
        reply.array(found.len());
        for found in found {
            self.reply_one(reply, found);
            check_reply(reply)?;
        }
        Ok(())
    }

    fn reply_one(&self, reply: &mut ReplyBuffer, found: &Found<'_>) {
        let extras = [self.with_distance, self.with_hash, self.with_point].into_iter().filter(|with| *with).count();
        if extras > 0 {
            reply.array(extras.saturating_add(1));
        }
        reply.bulk(found.member);
        if self.with_distance {
            reply_distance(reply, found.distance / self.unit);
        }
        if self.with_hash {
            reply.integer(found.score as i64);
        }
        if self.with_point {
            reply_point(reply, found.point);
        }
    }
}
