//! Shapes to search in, distances on a sphere, and the cells that cover a shape.

use super::cell::{Area, Cell, LATITUDE_MAX, LONGITUDE_MAX, Point, STEPS_MAX};

/// Of a sphere in place of the ellipsoid WGS 84, in metres.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Half of the way around the equator, about; in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
const DEGREE: f64 = std::f64::consts::PI / 180.0;

fn to_radians(degrees: f64) -> f64 {
    degrees * DEGREE
}

fn to_degrees(radians: f64) -> f64 {
    radians / DEGREE
}

/// Metres between two points along a great circle (haversine formula).
pub fn distance(a: Point, b: Point) -> f64 {
    let v = ((to_radians(b.longitude) - to_radians(a.longitude)) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance(a, b);
    }
    let (a, b) = (to_radians(a.latitude), to_radians(b.latitude));
    let u = ((b - a) / 2.0).sin();
    2.0 * EARTH_RADIUS_M * (u * u + a.cos() * b.cos() * v * v).sqrt().asin()
}

/// Metres between the latitudes of two points.
fn latitude_distance(a: Point, b: Point) -> f64 {
    EARTH_RADIUS_M * (to_radians(b.latitude) - to_radians(a.latitude)).abs()
}

/// Whether a distance is greater than a limit. That between opposite ends of the earth may not be a number, and is not.
fn is_beyond(distance: f64, limit: f64) -> bool {
    distance > limit
}

/// A shape. Lengths are metres.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Within a distance of the centre.
    Circle {
        /// Its centre.
        center: Point,
        /// The distance.
        radius: f64,
    },
    /// Within half its width and half its height of the centre.
    Box {
        /// Its centre.
        center: Point,
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
    /// Inside a line through these points, which returns to the first one.
    Polygon {
        /// The middle of the points on the sphere.
        center: Point,
        /// Its vertices, three or more.
        vertices: Vec<Point>,
    },
}

impl Shape {
    /// A polygon with these vertices.
    pub fn polygon(vertices: Vec<Point>) -> Self {
        let mut sums = [0.0; 3];
        for vertex in &vertices {
            let (longitude, latitude) = (to_radians(vertex.longitude), to_radians(vertex.latitude));
            let place = [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()];
            sums.iter_mut().zip(place).for_each(|(sum, part)| *sum += EARTH_RADIUS_M * part);
        }
        let [x, y, z] = sums.map(|sum| sum / vertices.len() as f64);
        let center = Point { longitude: to_degrees(y.atan2(x)), latitude: to_degrees(z.atan2((x * x + y * y).sqrt())) };
        Self::Polygon { center, vertices }
    }

    /// What distances are measured from.
    pub fn center(&self) -> Point {
        match self {
            Self::Circle { center, .. } | Self::Box { center, .. } | Self::Polygon { center, .. } => *center,
        }
    }

    /// Metres from the centre to a point of the shape; `None` outside.
    pub fn distance_within(&self, point: Point) -> Option<f64> {
        match self {
            Self::Circle { center, radius } => {
                Some(distance(*center, point)).filter(|distance| !is_beyond(*distance, *radius))
            }
            Self::Box { center, width, height } => {
                let middle = Point { longitude: center.longitude, latitude: point.latitude };
                let inside = !is_beyond(latitude_distance(point, *center), height / 2.0)
                    && !is_beyond(distance(point, middle), width / 2.0);
                inside.then(|| distance(*center, point))
            }
            Self::Polygon { center, vertices } => is_inside(vertices, point).then(|| distance(*center, point)),
        }
    }

    /// What the shape lies in.
    fn bounds(&self) -> Area {
        let (center, width, height) = match self {
            Self::Circle { center, radius } => (center, *radius, *radius),
            Self::Box { center, width, height } => (center, width / 2.0, height / 2.0),
            Self::Polygon { vertices, .. } => return bounds_of(vertices),
        };
        let latitude_delta = to_degrees(height / EARTH_RADIUS_M);
        // A degree of longitude is shortest at the edge that is nearer to a pole.
        let nearer = if center.latitude < 0.0 { -latitude_delta } else { latitude_delta };
        let longitude_delta = to_degrees(width / EARTH_RADIUS_M / to_radians(center.latitude + nearer).cos());
        Area {
            min: Point { longitude: center.longitude - longitude_delta, latitude: center.latitude - latitude_delta },
            max: Point { longitude: center.longitude + longitude_delta, latitude: center.latitude + latitude_delta },
        }
    }

    /// Up to nine cells that hold every point of the shape, that of its centre first, each once unless the earth is too
    /// small for nine different ones.
    pub fn cells(&self) -> Vec<Cell> {
        let (bounds, center) = (self.bounds(), self.center());
        // Near a pole, the centre of a polygon may lie where no cell does.
        let center = Point {
            longitude: center.longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
            latitude: center.latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
        };
        let mut steps = steps_for(self.reach(&bounds), center.latitude);
        if steps > 1 && !are_covered(&bounds, Cell::of(center, steps)) {
            steps = steps.saturating_sub(1);
        }
        let cell = Cell::of(center, steps);
        let area = cell.area();
        // Neighbours on a side that the shape does not reach are left out, except of cells so large that sides meet.
        let is_useless = |east: i32, north: i32| {
            steps >= 2
                && (north < 0 && area.min.latitude < bounds.min.latitude
                    || north > 0 && area.max.latitude > bounds.max.latitude
                    || east < 0 && area.min.longitude < bounds.min.longitude
                    || east > 0 && area.max.longitude > bounds.max.longitude)
        };
        let sides = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut cells = vec![cell];
        for (east, north) in sides.into_iter().filter(|(east, north)| !is_useless(*east, *north)) {
            let neighbour = cell.neighbour(east, north);
            // As Valkey does: one that follows its equal is left out, unless that is the centre's.
            if cells.len() == 1 || cells.last() != Some(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }

    /// Metres from the centre to the farthest point that has to be covered.
    fn reach(&self, bounds: &Area) -> f64 {
        match self {
            Self::Circle { radius, .. } => *radius,
            Self::Box { width, height, .. } => ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt(),
            Self::Polygon { center, .. } => {
                let Area { min, max } = *bounds;
                [(min, max), (max, max), (min, min), (max, min)]
                    .map(|(x, y)| distance(*center, Point { longitude: x.longitude, latitude: y.latitude }))
                    .into_iter()
                    .fold(0.0, f64::max)
            }
        }
    }
}

/// The steps of cells that are as large as the reach, three by three of which cover it in most cases.
fn steps_for(reach: f64, latitude: f64) -> u32 {
    if reach == 0.0 {
        return STEPS_MAX;
    }
    let (mut steps, mut reach) = (1i32, reach);
    while reach < MERCATOR_MAX_M {
        reach *= 2.0;
        steps = steps.saturating_add(1);
    }
    // Degrees of longitude are shorter towards the poles.
    let towards_pole = i32::from(latitude.abs() > 66.0).saturating_add(i32::from(latitude.abs() > 80.0));
    let steps = steps.saturating_sub(2).saturating_sub(towards_pole);
    steps.clamp(1, STEPS_MAX.cast_signed()).cast_unsigned()
}

/// Whether the cell and its neighbours cover the area.
fn are_covered(bounds: &Area, cell: Cell) -> bool {
    let side = |east, north| cell.neighbour(east, north).area();
    !(side(0, 1).max.latitude < bounds.max.latitude
        || side(0, -1).min.latitude > bounds.min.latitude
        || side(1, 0).max.longitude < bounds.max.longitude
        || side(-1, 0).min.longitude > bounds.min.longitude)
}

fn bounds_of(vertices: &[Point]) -> Area {
    let corner = |longitude, latitude| Point { longitude, latitude };
    let start = Area { min: corner(LONGITUDE_MAX, LATITUDE_MAX), max: corner(-LONGITUDE_MAX, -LATITUDE_MAX) };
    vertices.iter().fold(start, |Area { min, max }, vertex| Area {
        min: corner(min.longitude.min(vertex.longitude), min.latitude.min(vertex.latitude)),
        max: corner(max.longitude.max(vertex.longitude), max.latitude.max(vertex.latitude)),
    })
}

/// Whether a ray from the point to the east crosses the line an odd number of times.
fn is_inside(vertices: &[Point], point: Point) -> bool {
    let before = vertices.last().into_iter().chain(vertices);
    let crossings = vertices.iter().zip(before).filter(|(a, b)| {
        (a.latitude > point.latitude) != (b.latitude > point.latitude)
            && point.longitude
                < (b.longitude - a.longitude) * (point.latitude - a.latitude) / (b.latitude - a.latitude) + a.longitude
    });
    crossings.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn point(rng: &mut Rng) -> Point {
        Point { longitude: rng.unit() * 360.0 - 180.0, latitude: rng.unit() * 160.0 - 80.0 }
    }

    /// Of points all over the earth, those within a shape lie in its cells: at most nine, whatever its size.
    #[test]
    fn cells_cover_their_shape() {
        let mut rng = Rng::new(1);
        let mut inside = 0;
        for round in 0..3000 {
            let (center, size) = (point(&mut rng), 10f64.powf(2.0 + rng.unit() * 4.0));
            let near = |rng: &mut Rng, spread: f64| Point {
                longitude: (center.longitude + (rng.unit() - 0.5) * spread).clamp(-179.0, 179.0),
                latitude: (center.latitude + (rng.unit() - 0.5) * spread).clamp(-80.0, 80.0),
            };
            let spread = size / 50_000.0;
            let shape = match round % 3 {
                0 => Shape::Circle { center, radius: size },
                1 => Shape::Box { center, width: size, height: size / 3.0 },
                _ => Shape::polygon((0..5).map(|_| near(&mut rng, spread)).collect()),
            };
            let cells = shape.cells();
            assert!(cells.len() <= 9);
            for _ in 0..30 {
                let point = Point::of_score(near(&mut rng, spread).score());
                if shape.distance_within(point).is_some() {
                    inside += 1;
                    let score = point.score();
                    let found = cells.iter().any(|cell| (cell.scores().0..cell.scores().1).contains(&score));
                    // Cells end at the date line, and so does what a search finds.
                    let bounds = shape.bounds();
                    let crosses = bounds.min.longitude < -180.0 || bounds.max.longitude > 180.0;
                    assert!(
                        found || crosses || bounds.max.latitude > 85.0 || bounds.min.latitude < -85.0,
                        "{shape:?} {point:?}"
                    );
                }
            }
        }
        assert!(inside > 5000, "{inside}");
    }

    /// Palermo to Catania, as Valkey's documentation has it.
    #[test]
    fn distances_are_those_of_valkey() {
        let palermo = Point::of_score(Point { longitude: 13.361389, latitude: 38.115556 }.score());
        let catania = Point::of_score(Point { longitude: 15.087269, latitude: 37.502669 }.score());
        assert_eq!(format!("{:.4}", distance(palermo, catania)), "166274.1516");
    }
}
