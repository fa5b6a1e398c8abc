// Texts with mistakes: missing, duplicate or swapped lines, and misplaced characters. The mistakes are the same in every run.

/** Pseudo-random numbers that are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}
const signs = [
  '{{',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  ': ',
  '- ',
  '\n',
  'null',
  '$',
  '\\',
  '`',
  '=',
  '0',
  'é',
  '(?P<',
  '|',
  '*x',
  '.',
  ',',
]

/** A text with one to four mistakes. */
export function mutated(text: string, seed: number): string {
  const pick = numbers(seed)
  let out = text
  for (let turn = 0; turn <= seed % 4; turn++) {
    const lines = out.split('\n')
    const at = pick(lines.length)
    const place = pick(out.length)
    switch (pick(5)) {
      case 0:
        out = lines.toSpliced(at, 1).join('\n')
        break
      case 1:
        out = lines.toSpliced(at, 0, lines[pick(lines.length)] ?? '').join('\n')
        break
      case 2:
        out = out.slice(0, place) + signs[pick(signs.length)] + out.slice(place)
        break
      case 3:
        out = out.slice(0, place) + out.slice(place + 1 + pick(12))
        break
      default:
        out = lines.with(at, lines[pick(lines.length)] ?? '').join('\n')
    }
  }
  return out
}
