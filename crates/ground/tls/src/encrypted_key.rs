//! Private keys that a passphrase protects, as `openssl genpkey -aes256` and `openssl pkcs8 -topk8` write them: PKCS #8
//! with PBES2, whose key is made by PBKDF2 and whose cipher is AES in CBC mode.
//!
//! ```text
//! EncryptedPrivateKeyInfo ::= SEQUENCE { SEQUENCE { pbes2, SEQUENCE { derivation, cipher } }, OCTET STRING }
//! derivation ::= SEQUENCE { pbkdf2, SEQUENCE { salt, iterations, length OPTIONAL, prf DEFAULT hmacWithSHA1 } }
//! cipher ::= SEQUENCE { aes-cbc, OCTET STRING }
//! ```
//!
//! RFC 8018, sections 6.2 and A.2; RFC 5958, section 3.

use crate::der::{INTEGER, OBJECT, OCTETS, Reader, SEQUENCE};
use aes::cipher::{BlockCipherDecrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256, Block};
use ring::pbkdf2;
use std::num::NonZeroU32;
use zeroize::Zeroizing;

/// 1.2.840.113549.1.5.13 and .12.
const PBES2: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
/// 1.2.840.113549.2, and one more number for each hash.
const HMAC: [u8; 7] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];
/// 2.16.840.1.101.3.4.1, and one more number for each cipher.
const AES: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];

/// Most rounds of the derivation: some seconds.
const ITERATIONS_MAX: u32 = 10_000_000;

const BLOCK: usize = 16;

/// Why a key cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecrypted {
    /// Not by this passphrase.
    Passphrase,
    /// By none: it is damaged, or protected in another way.
    Form,
}

/// How a key is protected.
struct Protection<'a> {
    prf: pbkdf2::Algorithm,
    salt: &'a [u8],
    iterations: NonZeroU32,
    /// Bytes of the key of AES.
    key_len: usize,
    vector: [u8; BLOCK],
    data: &'a [u8],
}

impl<'a> Protection<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut info = Reader(Reader(der).expect(SEQUENCE)?);
        let mut algorithm = Reader(info.expect(SEQUENCE)?);
        let data = info.expect(OCTETS).filter(|data| !data.is_empty() && data.len().is_multiple_of(BLOCK))?;
        let mut parts = Reader(algorithm.expect(OBJECT).filter(|it| *it == PBES2).and(algorithm.expect(SEQUENCE))?);
        let (mut derivation, mut cipher) = (Reader(parts.expect(SEQUENCE)?), Reader(parts.expect(SEQUENCE)?));
        let mut derivation =
            Reader(derivation.expect(OBJECT).filter(|it| *it == PBKDF2).and(derivation.expect(SEQUENCE))?);
        let (salt, iterations) = (derivation.expect(OCTETS)?, number(derivation.expect(INTEGER)?)?);
        let mut prf = pbkdf2::PBKDF2_HMAC_SHA1;
        while let Some((tag, content)) = derivation.next() {
            // An integer is the length of the key, which follows from the cipher.
            if tag == SEQUENCE {
                prf = match Reader(content).expect(OBJECT)?.strip_prefix(&HMAC)? {
                    [7] => pbkdf2::PBKDF2_HMAC_SHA1,
                    [9] => pbkdf2::PBKDF2_HMAC_SHA256,
                    [10] => pbkdf2::PBKDF2_HMAC_SHA384,
                    [11] => pbkdf2::PBKDF2_HMAC_SHA512,
                    _ => return None,
                };
            }
        }
        let key_len = match cipher.expect(OBJECT)?.strip_prefix(&AES)? {
            [2] => 16,
            [22] => 24,
            [42] => 32,
            _ => return None,
        };
        let vector = cipher.expect(OCTETS)?.try_into().ok()?;
        let iterations = NonZeroU32::new(iterations).filter(|it| it.get() <= ITERATIONS_MAX)?;
        Some(Self { prf, salt, iterations, key_len, vector, data })
    }
}

/// A positive number.
fn number(digits: &[u8]) -> Option<u32> {
    let digits = digits.strip_prefix(&[0]).unwrap_or(digits);
    (digits.len() <= 4).then(|| digits.iter().fold(0, |number, digit| number << 8 | u32::from(*digit)))
}

/// The key in PKCS #8, without protection.
pub(crate) fn decrypt(der: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, Undecrypted> {
    let protection = Protection::read(der).ok_or(Undecrypted::Form)?;
    let mut key = Zeroizing::new([0; 32]);
    let key = key.get_mut(..protection.key_len).ok_or(Undecrypted::Form)?;
    pbkdf2::derive(protection.prf, protection.iterations, protection.salt, passphrase, key);
    let plain = match key.len() {
        16 => decrypt_blocks::<Aes128>(key, &protection),
        24 => decrypt_blocks::<Aes192>(key, &protection),
        _ => decrypt_blocks::<Aes256>(key, &protection),
    };
    plain.and_then(unpadded).ok_or(Undecrypted::Passphrase)
}

/// CBC: each block is mixed with the encrypted one before it.
fn decrypt_blocks<C: KeyInit + BlockCipherDecrypt<BlockSize = aes::cipher::consts::U16>>(
    key: &[u8],
    protection: &Protection<'_>,
) -> Option<Zeroizing<Vec<u8>>> {
    let cipher = C::new_from_slice(key).ok()?;
    let mut plain = Zeroizing::new(Vec::with_capacity(protection.data.len()));
    let mut before = protection.vector;
    for encrypted in protection.data.as_chunks::<BLOCK>().0 {
        let mut block = Block::from(*encrypted);
        cipher.decrypt_block(&mut block);
        plain.extend(block.iter().zip(before).map(|(byte, mask)| byte ^ mask));
        before = *encrypted;
    }
    Some(plain)
}

/// Without the padding, which with a wrong key is wrong as a rule; and so is the head of the sequence.
fn unpadded(mut plain: Zeroizing<Vec<u8>>) -> Option<Zeroizing<Vec<u8>>> {
    let padding = usize::from(*plain.last()?);
    let length = plain.len().checked_sub(padding).filter(|_| (1..=BLOCK).contains(&padding))?;
    if plain.get(length..)?.iter().any(|byte| usize::from(*byte) != padding) {
        return None;
    }
    plain.truncate(length);
    let mut rest = Reader(&plain);
    (rest.expect(SEQUENCE).is_some() && rest.0.is_empty()).then_some(())?;
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Passphrase, private_key};
    use std::path::PathBuf;

    fn read(name: &str, passphrase: Option<&str>) -> Result<Vec<u8>, String> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
        let passphrase = passphrase.map(|text| Passphrase { directive: "tls-key-file-pass", text: text.as_bytes() });
        let key = private_key("tls-key-file", &path, passphrase).map_err(|error| error.to_string())?;
        Ok(key.secret_der().to_vec())
    }

    /// Files of OpenSSL 3, with fewer rounds than it takes.
    #[test]
    fn keys_of_openssl_are_decrypted() {
        let plain = read("plain.pem", None).unwrap();
        for name in ["aes-128.pem", "aes-192.pem", "aes-256.pem", "sha1.pem", "sha512.pem"] {
            assert!(read(name, Some("pass phrase")).unwrap() == plain, "{name}");
            for wrong in ["pass phrasE", "pass phrase ", "x"] {
                let error = read(name, Some(wrong)).unwrap_err();
                assert!(
                    error.ends_with("with the passphrase of tls-key-file-pass: it is wrong, or the key is damaged")
                );
            }
            let error = read(name, Some("")).unwrap_err();
            assert!(
                error.contains("has a passphrase: give it to tls-key-file-pass, or write the key without"),
                "{error}"
            );
            let error = read(name, None).unwrap_err();
            assert!(error.contains("has a passphrase: write the key without one"), "{error}");
        }
        for name in ["scrypt.pem", "des3.pem", "old.pem"] {
            let error = read(name, Some("pass phrase")).unwrap_err();
            assert!(error.contains("in a form that is not supported: write it again with openssl pkcs8"), "{error}");
        }
        assert!(read("plain.pem", Some("of no use")).unwrap() == plain);
    }

    /// Neither a cut nor a changed byte does harm, whatever lengths it announces.
    #[test]
    fn damaged_keys_are_refused() {
        let text = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/aes-256.pem")).unwrap();
        let plain = String::from_utf8(text).unwrap().replace("ENCRYPTED PRIVATE", "PRIVATE");
        let der = rustls::pki_types::pem::PemObject::from_pem_slice(plain.as_bytes()).unwrap();
        let der: rustls::pki_types::PrivatePkcs8KeyDer<'_> = der;
        let der = der.secret_pkcs8_der();
        let right = decrypt(der, b"pass phrase").unwrap();
        for length in 0..der.len() {
            assert_eq!(decrypt(&der[..length], b"pass phrase").err(), Some(Undecrypted::Form), "{length}");
        }
        // The number of rounds is left alone: more of them only take longer.
        let rounds = der.windows(4).position(|window| window == [INTEGER, 2, 0x03, 0xe8]).unwrap();
        for at in (0..der.len()).filter(|at| !(rounds..rounds + 4).contains(at)) {
            let mut changed = der.to_vec();
            changed[at] ^= 0x55;
            let found = decrypt(&changed, b"pass phrase");
            // Without a check of its own, CBC gives another content for a changed block in the middle.
            assert!(found.map_or(true, |found| *found != *right || at < 64), "{at}");
        }
    }
}
