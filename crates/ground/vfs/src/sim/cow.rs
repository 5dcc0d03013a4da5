//! A vector whose copies share all chunks until one of them changes. It makes a frozen disk at every operation of a run
//! affordable: a copy costs one pointer per 64 elements, a change copies one chunk.

use std::sync::Arc;

/// 64 keeps both costs small: 1 GiB of 4 KiB pages is 4,096 pointers per copy, and a change copies 64 elements.
const CHUNK: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct CowVec<T> {
    /// All but the last hold exactly `CHUNK` elements, the last at least one.
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for CowVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> CowVec<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    /// Mutable access to the element; earlier copies do not see the change.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        Arc::make_mut(self.chunks.get_mut(index / CHUNK)?).get_mut(index % CHUNK)
    }

    pub fn push(&mut self, element: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(Vec::new()));
        }
        let last = self.chunks.last_mut().expect("pushed when the last one was full");
        Arc::make_mut(last).push(element);
        self.len += 1;
    }

    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.chunks.truncate(len.div_ceil(CHUNK));
        if !len.is_multiple_of(CHUNK) {
            let last = self.chunks.last_mut().expect("a part of a chunk remains");
            Arc::make_mut(last).truncate(len % CHUNK);
        }
        self.len = len;
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Clone> FromIterator<T> for CowVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut all = Self::default();
        elements.into_iter().for_each(|element| all.push(element));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Behaves as a plain vector, and copies made on the way stay unchanged.
    #[test]
    fn agrees_with_a_vector_and_copies_stay() {
        let mut rng = Rng::new(1);
        let (mut cow, mut plain) = (CowVec::default(), Vec::new());
        let mut copies = Vec::new();
        for step in 0..2000u64 {
            match rng.below(10) {
                0 => {
                    let len = rng.below(plain.len() as u64 + 2) as usize;
                    cow.truncate(len);
                    plain.truncate(len);
                }
                1 | 2 if !plain.is_empty() => {
                    let index = rng.below(plain.len() as u64) as usize;
                    *cow.get_mut(index).expect("inside") = step;
                    plain[index] = step;
                }
                3 => copies.push((cow.clone(), plain.clone())),
                _ => {
                    cow.push(step);
                    plain.push(step);
                }
            }
            assert_eq!((cow.len(), cow.get(plain.len())), (plain.len(), None));
        }
        copies.push((cow, plain));
        for (cow, plain) in copies {
            assert!(cow.iter().eq(plain.iter()));
            assert_eq!(cow.is_empty(), plain.is_empty());
        }
    }
}
