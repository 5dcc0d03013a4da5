//! The decimal digits of a double: Grisu2, from F. Loitsch, "Printing Floating-Point Numbers Quickly and Accurately
//! with Integers", PLDI 2010.
//!
//! The digits always read back to the same double. In about one case of a thousand they are one more than the fewest,
//! or the last is not the nearest. An algorithm without these exceptions (Ryu) would differ from Valkey's output, and
//! clients compare scores as text.

/// Decimal digits: `digits * 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    /// At most 18 digits, not zero.
    pub digits: u64,
    pub exponent: i32,
}

/// `mantissa * 2^exponent`, the "do-it-yourself floating point" of the paper.
#[derive(Clone, Copy)]
struct Scaled {
    mantissa: u64,
    exponent: i32,
}

const HIDDEN_BIT: u64 = 1 << 52;

/// The digits of a finite double above zero.
pub(super) fn digits(value: f64) -> Decimal {
    let exact = Scaled::of(value);
    // Half way to the neighbours. The lower one is nearer when the mantissa is the least of its exponent.
    let upper =
        Scaled { mantissa: exact.mantissa.wrapping_shl(1).wrapping_add(1), exponent: exact.exponent.wrapping_sub(1) }
            .normalized();
    let shift = if exact.mantissa == HIDDEN_BIT { 2 } else { 1 };
    let lower_exponent = exact.exponent.wrapping_sub(shift as i32);
    let lower = Scaled {
        mantissa: exact
            .mantissa
            .wrapping_shl(shift)
            .wrapping_sub(1)
            .wrapping_shl(lower_exponent.wrapping_sub(upper.exponent) as u32),
        exponent: upper.exponent,
    };
    let (power, power_exponent) = cached_power(upper.exponent);
    let exact = exact.normalized().times(power);
    let mut upper = upper.times(power);
    let mut lower = lower.times(power);
    // Each product is wrong by at most one unit, so the interval shrinks by one at both ends.
    upper.mantissa = upper.mantissa.wrapping_sub(1);
    lower.mantissa = lower.mantissa.wrapping_add(1);
    generate(exact, upper, upper.mantissa.wrapping_sub(lower.mantissa), power_exponent.wrapping_neg())
}

impl Scaled {
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let fraction = bits & HIDDEN_BIT.wrapping_sub(1);
        match (bits.wrapping_shr(52) & 0x7ff) as i32 {
            0 => Self { mantissa: fraction, exponent: -1074 },
            biased => Self { mantissa: fraction | HIDDEN_BIT, exponent: biased.wrapping_sub(1075) },
        }
    }

    fn normalized(self) -> Self {
        let shift = self.mantissa.leading_zeros();
        Self { mantissa: self.mantissa.wrapping_shl(shift), exponent: self.exponent.wrapping_sub(shift as i32) }
    }

    /// The upper half of the product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa).wrapping_mul(u128::from(other.mantissa)).wrapping_add(1 << 63);
        Self {
            mantissa: product.wrapping_shr(64) as u64,
            exponent: self.exponent.wrapping_add(other.exponent).wrapping_add(64),
        }
    }
}

/// Takes digits off `upper` from the left until the rest is within `width`, the distance of the bounds; then steps the
/// last digit towards `exact`.
fn generate(exact: Scaled, upper: Scaled, width: u64, mut exponent: i32) -> Decimal {
    // `cached_power` brings this into 32..=60, so that the integer part has at most 32 bits.
    let point = upper.exponent.unsigned_abs();
    let one = 1u64.wrapping_shl(point);
    let mut distance = upper.mantissa.wrapping_sub(exact.mantissa);
    let mut width = width;
    let mut integer = upper.mantissa.wrapping_shr(point) as u32;
    let mut fraction = upper.mantissa & one.wrapping_sub(1);
    let mut digits = 0u64;
    // Before the first digit the rest is the whole number, which is more than the width.
    for power in (0..=integer.checked_ilog10().unwrap_or_default()).rev() {
        let unit = 10u32.wrapping_pow(power);
        digits = digits.wrapping_mul(10).wrapping_add(u64::from(integer.checked_div(unit).unwrap_or_default()));
        integer = integer.checked_rem(unit).unwrap_or_default();
        let rest = u64::from(integer).wrapping_shl(point).wrapping_add(fraction);
        if rest <= width {
            exponent = exponent.wrapping_add(power as i32);
            let digits = step_down(digits, width, rest, u64::from(unit).wrapping_shl(point), distance);
            return Decimal { digits, exponent };
        }
    }
    loop {
        fraction = fraction.wrapping_mul(10);
        width = width.wrapping_mul(10);
        distance = distance.wrapping_mul(10);
        exponent = exponent.wrapping_sub(1);
        digits = digits.wrapping_mul(10).wrapping_add(fraction.wrapping_shr(point));
        fraction &= one.wrapping_sub(1);
        if fraction < width {
            let digits = step_down(digits, width, fraction, one, distance);
            return Decimal { digits, exponent };
        }
    }
}

/// The digits so far are those of a number `rest` below the upper bound; each step down adds `unit` to that. Steps
/// while the result stays inside the bounds and comes nearer to the exact value, which is `distance` below the upper
/// bound.
fn step_down(mut digits: u64, width: u64, mut rest: u64, unit: u64, distance: u64) -> u64 {
    while rest < distance
        && width.wrapping_sub(rest) >= unit
        && (rest.wrapping_add(unit) < distance
            || distance.wrapping_sub(rest) > rest.wrapping_add(unit).wrapping_sub(distance))
    {
        digits = digits.wrapping_sub(1);
        rest = rest.wrapping_add(unit);
    }
    digits
}

/// A power of ten that brings a number with this binary exponent into the range of `generate`, and its decimal
/// exponent. Several would do; the choice decides the exceptional cases above.
fn cached_power(exponent: i32) -> (Scaled, i32) {
    let estimate = (f64::from(exponent.wrapping_add(POWERS.len() as i32)) * -std::f64::consts::LOG10_2) as i32;
    let mut index = estimate.wrapping_sub(POWER_FIRST).wrapping_div(POWER_STEP);
    loop {
        let power = POWER_FIRST.wrapping_add(index.wrapping_mul(POWER_STEP));
        let binary = binary_exponent(power);
        match exponent.wrapping_add(binary).wrapping_add(64) {
            ..-60 => index = index.wrapping_add(1),
            -31.. => index = index.wrapping_sub(1),
            _ => {
                let mantissa = POWERS.get(index as usize).copied().unwrap_or_default();
                return (Scaled { mantissa, exponent: binary }, power);
            }
        }
    }
}

/// The exponent of two that belongs to the mantissa of `10^power`: `floor(power * log2(10)) - 63`.
fn binary_exponent(power: i32) -> i32 {
    power.wrapping_mul(217_706).wrapping_shr(16).wrapping_sub(63)
}

const POWER_FIRST: i32 = -348;
const POWER_STEP: i32 = 8;

/// The mantissas of `10^-348`, `10^-340` to `10^340`: their first 64 bits, rounded.
#[rustfmt::skip]
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288, 0xbaae_e17f_a23e_bf76, 0x8b16_fb20_3055_ac76, 0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d, 0xe61a_cf03_3d1a_45df, 0xab70_fe17_c79a_c6ca, 0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c, 0x8dd0_1fad_907f_fc3c, 0xd351_5c28_3155_9a83, 0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb, 0xaecc_4991_4078_536d, 0x823c_1279_5db6_ce57, 0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f, 0xd774_85cb_2582_3ac7, 0xa086_cfcd_97bf_97f4, 0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e, 0x84c8_d4df_d2c6_3f3b, 0xc5dd_4427_1ad3_cdba, 0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584, 0xa3ab_6658_0d5f_daf6, 0xf3e2_f893_dec3_f126, 0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b, 0xc9bc_ff60_34c1_3053, 0x964e_858c_91ba_2655, 0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f, 0xf8a9_5fcf_8874_7d94, 0xb944_7093_8fa8_9bcf, 0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6, 0x993f_e2c6_d07b_7fac, 0xe45c_10c4_2a2b_3b06, 0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e, 0xbce5_0864_9211_1aeb, 0x8cbc_cc09_6f50_88cc, 0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000, 0xe8d4_a510_0000_0000, 0xad78_ebc5_ac62_0000, 0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3, 0x8f7e_32ce_7bea_5c70, 0xd5d2_38a4_abe9_8068, 0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27, 0xb0de_6538_8cc8_ada8, 0x83c7_088e_1aab_65db, 0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758, 0xda01_ee64_1a70_8dea, 0xa26d_a399_9aef_774a, 0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877, 0x865b_8692_5b9b_c5c2, 0xc835_53c5_c896_5d3d, 0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3, 0xa59b_c234_db39_8c25, 0xf6c6_9a72_a398_9f5c, 0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2, 0xcc20_ce9b_d35c_78a5, 0x9816_5af3_7b21_53df, 0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396, 0xfb9b_7cd9_a4a7_443c, 0xbb76_4c4c_a7a4_4410, 0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c, 0x9b10_a4e5_e991_3129, 0xe710_9bfb_a19c_0c9d, 0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85, 0xbf21_e440_03ac_dd2d, 0x8e67_9c2f_5e44_ff8f, 0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9, 0xeb96_bf6e_badf_77d9, 0xaf87_023b_9bf0_ee6b,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The table against exact arithmetic on big integers.
    #[test]
    fn powers_are_the_first_bits_of_powers_of_ten() {
        for (index, mantissa) in POWERS.iter().enumerate() {
            let power = POWER_FIRST + POWER_STEP * index as i32;
            let exact = Big::power_of_ten(power.unsigned_abs());
            // 10^p = m * 2^e, or 10^-p * m * 2^e = 1: compare with half a unit of m on both sides.
            let exponent = binary_exponent(power);
            let (low, high) = (u128::from(*mantissa) * 2 - 1, u128::from(*mantissa) * 2 + 1);
            let (below, above) = if power < 0 {
                let one = Big::from(1).shifted((1 - exponent) as u32);
                (exact.times(low).compare(&one), exact.times(high).compare(&one))
            } else {
                let shift = exponent - 1;
                let scale = |m: u128| Big::from(m).shifted(shift.max(0) as u32);
                let exact = exact.shifted((-shift).max(0) as u32);
                (scale(low).compare(&exact), scale(high).compare(&exact))
            };
            assert!(below.is_le() && above.is_ge(), "10^{power}");
        }
    }

    /// A natural number, least significant word first.
    struct Big(Vec<u32>);

    impl Big {
        fn from(value: u128) -> Self {
            Self((0..4).map(|word| (value >> (32 * word)) as u32).collect())
        }

        fn power_of_ten(power: u32) -> Self {
            (0..power).fold(Self::from(1), |product, _| product.times(10))
        }

        fn times(&self, factor: u128) -> Self {
            let mut words = vec![0u32; self.0.len() + 4];
            for (at, word) in self.0.iter().enumerate() {
                let mut carry = 0u64;
                for (place, slot) in words[at..].iter_mut().enumerate() {
                    let part = if place < 4 { (factor >> (32 * place)) as u32 } else { 0 };
                    let sum = u64::from(*slot) + u64::from(*word) * u64::from(part) + carry;
                    *slot = sum as u32;
                    carry = sum >> 32;
                }
            }
            words.truncate(words.len() - words.iter().rev().take_while(|word| **word == 0).count());
            Self(words)
        }

        fn shifted(&self, bits: u32) -> Self {
            let mut words = vec![0; (bits / 32) as usize];
            words.extend_from_slice(&self.0);
            words.push(0);
            Self(words).times(1 << (bits % 32))
        }

        fn compare(&self, other: &Self) -> std::cmp::Ordering {
            let len = self.0.len().max(other.0.len());
            let word = |big: &Self, at: usize| big.0.get(at).copied().unwrap_or(0);
            (0..len)
                .rev()
                .map(|at| word(self, at).cmp(&word(other, at)))
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        }
    }
}
