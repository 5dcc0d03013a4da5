//! Cells of the earth: halved again and again, in longitude and latitude by turns. A cell is the bits of those choices.
//! The finest cell has 52 of them, which a score holds exactly; so all points of a cell are neighbours in a sorted set.

/// Halvings of either coordinate in the finest cell.
pub const STEPS_MAX: u32 = 26;
/// Longitudes go from minus this to this.
pub const LONGITUDE_MAX: f64 = 180.0;
/// Latitudes go from minus this to this: where the projection of web maps ends, which makes the earth a square.
pub const LATITUDE_MAX: f64 = 85.051_128_78;

/// Bits of latitude.
const EVEN: u64 = 0x5555_5555_5555_5555;
/// Bits of longitude.
const ODD: u64 = !EVEN;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// What lies between two longitudes and two latitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its south-western corner.
    pub min: Point,
    /// Its north-eastern corner.
    pub max: Point,
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    steps: u32,
}

impl Point {
    /// Whether a score can express the point.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }

    /// The score of the point.
    pub fn score(self) -> f64 {
        Cell::of(self, STEPS_MAX).bits as f64
    }

    /// The point of a score: the middle of its cell. Any score has one.
    pub fn of_score(score: f64) -> Self {
        // As compilers for x86-64 convert what no GEOADD has made.
        let bits = match score {
            ..0.0 => (score as i64).cast_unsigned(),
            0.0..18_446_744_073_709_551_616.0 => score as u64,
            _ => 0,
        };
        let Area { min, max } = Cell { bits, steps: STEPS_MAX }.area();
        let middle = |min: f64, max: f64, limit: f64| ((min + max) / 2.0).clamp(-limit, limit);
        Self {
            longitude: middle(min.longitude, max.longitude, LONGITUDE_MAX),
            latitude: middle(min.latitude, max.latitude, LATITUDE_MAX),
        }
    }

    /// The name that geohash.org gives the point: eleven letters of five bits, of which the last is always the first
    /// letter.
    pub fn name(self) -> [u8; 11] {
        const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        // Unlike scores, names have latitudes up to the poles.
        let bits = interleaved(self, STEPS_MAX, 90.0);
        std::array::from_fn(|at| {
            let behind = 52u32.saturating_sub((at as u32).saturating_add(1).saturating_mul(5));
            let letter = if at == 10 { 0 } else { bits >> behind & 0x1F };
            LETTERS.get(letter as usize).copied().unwrap_or(b'0')
        })
    }
}

/// The bits of the cell that holds the point, with latitudes up to `latitude_max`.
fn interleaved(point: Point, steps: u32, latitude_max: f64) -> u64 {
    let halvings = |value: f64, max: f64| ((value + max) / (max + max) * (1u64 << steps) as f64) as u32;
    spread(halvings(point.latitude, latitude_max)) | spread(halvings(point.longitude, LONGITUDE_MAX)) << 1
}

/// The bits of a number to the even bits of another one.
fn spread(number: u32) -> u64 {
    [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, EVEN),
    ]
    .into_iter()
    .fold(u64::from(number), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// The reverse of [`spread`].
fn gather(bits: u64) -> u32 {
    [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0xFFFF_FFFF),
    ]
    .into_iter()
    .fold(bits & EVEN, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
}

impl Cell {
    /// The cell of this many steps, from 1 to [`STEPS_MAX`], that holds the point.
    pub fn of(point: Point, steps: u32) -> Self {
        Self { bits: interleaved(point, steps, LATITUDE_MAX), steps }
    }

    /// What it covers.
    pub fn area(self) -> Area {
        let scale = (1u64 << self.steps) as f64;
        let edge = |number: f64, max: f64| -max + number / scale * (max + max);
        let (south, west) = (f64::from(gather(self.bits)), f64::from(gather(self.bits >> 1)));
        let corner = |west, south| Point { longitude: edge(west, LONGITUDE_MAX), latitude: edge(south, LATITUDE_MAX) };
        Area { min: corner(west, south), max: corner(west + 1.0, south + 1.0) }
    }

    /// The neighbour cell to the east and to the north, each -1, 0 or 1. The earth is closed in both directions.
    pub fn neighbour(self, east: i32, north: i32) -> Self {
        let unused = 64u32.saturating_sub(self.steps.saturating_mul(2));
        let moved = |axis: u64, by: i32| {
            // With the other axis' bits set, a carry goes through them.
            let others = !axis >> unused;
            let bits = match by {
                0 => self.bits & axis,
                1.. => (self.bits & axis).wrapping_add(others.wrapping_add(1)),
                _ => (self.bits & axis | others).wrapping_sub(others.wrapping_add(1)),
            };
            if by == 0 { bits } else { bits & axis >> unused }
        };
        Self { bits: moved(ODD, east) | moved(EVEN, north), ..self }
    }

    /// The scores of its points: from the first on, up to before the second.
    pub fn scores(self) -> (f64, f64) {
        let shift = STEPS_MAX.saturating_sub(self.steps).saturating_mul(2);
        ((self.bits << shift) as f64, (self.bits.wrapping_add(1) << shift) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point { longitude: 13.361389, latitude: 38.115556 };

    /// The scores, names and decoded places that Valkey documents.
    #[test]
    fn scores_are_those_of_valkey() {
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698.0);
        let stored = Point::of_score(PALERMO.score());
        assert_eq!(
            format!("{:.17} {:.17}", stored.longitude, stored.latitude),
            "13.36138933897018433 38.11555639549629859"
        );
        assert_eq!(&stored.name(), b"sqc8b49rny0");
    }

    /// A point lies in its cell at every size, and cells of neighbours touch.
    #[test]
    fn cells_hold_their_points_and_touch_their_neighbours() {
        for steps in 1..=STEPS_MAX {
            let cell = Cell::of(PALERMO, steps);
            let Area { min, max } = cell.area();
            assert!(min.longitude <= PALERMO.longitude && PALERMO.longitude < max.longitude);
            assert!(min.latitude <= PALERMO.latitude && PALERMO.latitude < max.latitude);
            let (first, end) = cell.scores();
            assert!(first <= PALERMO.score() && PALERMO.score() < end);
            for (east, north) in [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1)] {
                assert_eq!(cell.neighbour(east, north).neighbour(-east, -north), cell);
            }
            if steps > 1 {
                assert_eq!(cell.neighbour(1, 0).area().min.longitude, max.longitude);
                assert_eq!(cell.neighbour(0, -1).area().max.latitude, min.latitude);
            }
        }
    }
}
