// Floats as decimals of 96 bits and at most 28 decimal places, the numbers that `format_number` writes.

const maxBits = 1n << 96n
const maxPlaces = 28
/** Number of reliable digits in a float: 15 or 16. */
const exactBits = 1n << 52n

/** The text of the decimal nearest to a float, without exponent or trailing zeros. Undefined if it does not fit. */
export function decimalText(value: number): string | undefined {
  if (!Number.isFinite(value)) return undefined
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  let [digits, exponent] = fraction(Math.abs(value))
  // The value is digits · 2^exponent, and becomes digits · 10^-places.
  let places = 0
  if (exponent >= 0) {
    digits <<= BigInt(exponent)
    return digits < maxBits ? sign + digits : undefined
  }
  for (; exponent < 0; exponent++) {
    if (digits % 2n === 0n) digits /= 2n
    else if (digits * 5n < maxBits) {
      digits *= 5n
      places++
    } else digits /= 2n
  }
  while (places > maxPlaces || (places > 0 && digits >= exactBits)) {
    digits = (digits + 5n) / 10n
    places--
  }
  while (places > 0 && digits % 10n === 0n) {
    digits /= 10n
    places--
  }
  if (places === 0) return sign + digits
  const text = String(digits).padStart(places + 1, '0')
  return `${sign}${text.slice(0, -places)}.${text.slice(-places)}`
}

/** An integer and a power of two as its factor. */
function fraction(value: number): [bigint, number] {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const exponent = Number(bits >> 52n)
  const mantissa = bits & (exactBits - 1n)
  return exponent === 0 ? [mantissa, -1074] : [mantissa | exactBits, exponent - 1075]
}
