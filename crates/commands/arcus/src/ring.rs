//! The ring of ARCUS' clients: ketama with MD5, 160 points a node.

use md5::{Digest as _, Md5};

/// Digests for each node. Each gives four points.
const DIGESTS: u32 = 40;

/// Which node of a cluster each key belongs to.
#[derive(Debug)]
pub struct Ring {
    /// Names (`address:port`), sorted.
    nodes: Vec<String>,
    /// The place of this node among them.
    own: Option<usize>,
    /// Points in ascending order, each with its node.
    points: Vec<(u32, usize)>,
}

impl Ring {
    /// The ring of these nodes, `own` being the name of this one.
    pub fn new(names: impl IntoIterator<Item = String>, own: &str) -> Self {
        let mut nodes: Vec<String> = names.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut points: Vec<_> =
            nodes.iter().enumerate().flat_map(|(node, name)| points_of(name).map(move |point| (point, node))).collect();
        // Of equal points the first counts: that of the smaller name.
        points.sort_unstable();
        let own = nodes.iter().position(|name| name == own);
        Self { nodes, own, points }
    }

    /// The names of its nodes, sorted.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Whether this node is on it.
    pub fn has_own(&self) -> bool {
        self.own.is_some()
    }

    /// The node that a key belongs to; `None` on an empty ring.
    pub fn owner(&self, key: &[u8]) -> Option<&str> {
        self.nodes.get(self.owner_index(key)?).map(String::as_str)
    }

    /// Whether the key belongs to this node.
    pub fn is_own(&self, key: &[u8]) -> bool {
        self.own.is_some() && self.owner_index(key) == self.own
    }

    fn owner_index(&self, key: &[u8]) -> Option<usize> {
        let digest: [u8; 16] = Md5::digest(key).into();
        let (head, _) = digest.split_first_chunk()?;
        let point = u32::from_le_bytes(*head);
        let at = self.points.partition_point(|(of, _)| *of < point);
        self.points.get(at).or(self.points.first()).map(|(_, node)| *node)
    }
}

fn points_of(name: &str) -> impl Iterator<Item = u32> + use<> {
    let name = name.to_owned();
    (0..DIGESTS).flat_map(move |number| {
        let digest: [u8; 16] = Md5::digest(format!("{name}-{number}")).into();
        let (words, _) = digest.as_chunks();
        let words: [u32; 4] = std::array::from_fn(|index| words.get(index).map_or(0, |word| u32::from_le_bytes(*word)));
        words
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(names: &[&str], own: &str) -> Ring {
        Ring::new(names.iter().map(ToString::to_string), own)
    }

    /// The first points of `md5("127.0.0.1:11211-0")`, by Python's hashlib.
    #[test]
    fn points_are_those_of_ketama() {
        let points: Vec<u32> = points_of("127.0.0.1:11211").collect();
        assert_eq!(points.len(), 160);
        assert_eq!(points[..4], POINTS);
    }

    const POINTS: [u32; 4] = [2_589_391_586, 1_482_608_462, 2_562_656_683, 1_506_298_073];

    /// By Python's hashlib and bisect.
    const OWNERS: [(&str, &str); 7] = [
        ("a", "127.0.0.1:11212"),
        ("b", "127.0.0.1:11211"),
        ("greeting", "10.0.0.7:11211"),
        ("user:1", "10.0.0.7:11211"),
        ("user:2", "127.0.0.1:11211"),
        ("user:3", "10.0.0.7:11211"),
        ("한글", "10.0.0.7:11211"),
    ];

    #[test]
    fn keys_are_where_clients_look_for_them() {
        let ring = ring(&["127.0.0.1:11211", "127.0.0.1:11212", "10.0.0.7:11211"], "127.0.0.1:11212");
        for (key, owner) in OWNERS {
            assert_eq!(ring.owner(key.as_bytes()), Some(owner), "{key}");
            assert_eq!(ring.is_own(key.as_bytes()), owner == "127.0.0.1:11212", "{key}");
        }
    }

    #[test]
    fn a_node_that_is_not_on_the_ring_owns_nothing() {
        let ring = ring(&["a:1", "b:1"], "c:1");
        assert!(!ring.has_own() && (0..1000).all(|key| !ring.is_own(format!("{key}").as_bytes())));
        assert_eq!(Ring::new([], "a:1").owner(b"k"), None);
    }

    /// A second node takes about half of the keys, and no key moves between the others.
    #[test]
    fn a_new_node_takes_its_share() {
        let keys: Vec<String> = (0..10_000).map(|key| format!("key:{key}")).collect();
        let (before, after) = (ring(&["a:1", "b:1"], "a:1"), ring(&["a:1", "b:1", "c:1"], "a:1"));
        let moves = |key: &&String| before.owner(key.as_bytes()) != after.owner(key.as_bytes());
        let moved: Vec<_> = keys.iter().filter(moves).collect();
        assert!(moved.iter().all(|key| after.owner(key.as_bytes()) == Some("c:1")));
        assert!((2000..4700).contains(&moved.len()), "{} of 10000 moved", moved.len());
    }
}
