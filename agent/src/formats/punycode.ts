// Labels of international domain names in their ASCII form (RFC 3492).

const base = 36
const smallest = 1
const largest = 26
const skew = 38
const damp = 700

function adapted(delta: number, points: number, first: boolean): number {
  let rest = first ? Math.floor(delta / damp) : delta >> 1
  rest += Math.floor(rest / points)
  let k = 0
  while (rest > ((base - smallest) * largest) >> 1) {
    rest = Math.floor(rest / (base - smallest))
    k += base
  }
  return k + Math.floor(((base - smallest + 1) * rest) / (rest + skew))
}

function threshold(k: number, bias: number): number {
  return k <= bias ? smallest : k >= bias + largest ? largest : k - bias
}

/** The label without `xn--`. */
export function encodeLabel(label: string): string {
  const points = Array.from(label, (character) => character.codePointAt(0) as number)
  const basic = points.filter((point) => point < 0x80)
  let result = String.fromCodePoint(...basic)
  let handled = basic.length
  if (handled > 0) result += '-'
  let next = 0x80
  let delta = 0
  let bias = 72
  while (handled < points.length) {
    const lowest = Math.min(...points.filter((point) => point >= next))
    delta += (lowest - next) * (handled + 1)
    next = lowest
    for (const point of points) {
      if (point < next) delta++
      if (point !== next) continue
      let rest = delta
      for (let k = base; ; k += base) {
        const t = threshold(k, bias)
        if (rest < t) break
        result += digit(t + ((rest - t) % (base - t)))
        rest = Math.floor((rest - t) / (base - t))
      }
      result += digit(rest)
      bias = adapted(delta, handled + 1, handled === basic.length)
      delta = 0
      handled++
    }
    delta++
    next++
  }
  return result
}

/** The label of what stands behind `xn--`; undefined if it is none. */
export function decodeLabel(text: string): string | undefined {
  const delimiter = text.lastIndexOf('-')
  const points = Array.from(
    delimiter > 0 ? text.slice(0, delimiter) : '',
    (character) => character.codePointAt(0) as number,
  )
  if (points.some((point) => point >= 0x80)) return undefined
  let at = delimiter > 0 ? delimiter + 1 : 0
  let next = 0x80
  let index = 0
  let bias = 72
  while (at < text.length) {
    const before = index
    let weight = 1
    for (let k = base; ; k += base) {
      const value = digitValue(text.charCodeAt(at++))
      if (value < 0) return undefined
      index += value * weight
      if (index > 0x7fffffff) return undefined
      const t = threshold(k, bias)
      if (value < t) break
      weight *= base - t
    }
    bias = adapted(index - before, points.length + 1, before === 0)
    next += Math.floor(index / (points.length + 1))
    index %= points.length + 1
    if (next > 0x10ffff || (next >= 0xd800 && next < 0xe000)) return undefined
    points.splice(index++, 0, next)
  }
  return String.fromCodePoint(...points)
}

function digit(value: number): string {
  return String.fromCharCode(value < 26 ? value + 97 : value + 22)
}

function digitValue(code: number): number {
  if (code >= 48 && code <= 57) return code - 22
  if (code >= 65 && code <= 90) return code - 65
  return code >= 97 && code <= 122 ? code - 97 : -1
}
