import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { pageText } from './page-text.ts'

const page = `# remap

See [Failures](../language/fallibility.md), [remap](../transforms/remap.md) and [the list](https://tz.example/zones), not \`[a](b.md)\`.

- \`source\` (remap program): The program that runs on each event.

\`\`\`coffee
. = [x](y.md)
\`\`\`
`

test('a link is its text with what explain takes, or its URL', () => {
  expect(pageText(page, { color: false })).toBe(
    page.replace(
      /^See .*$/m,
      'See Failures (explain fallibility), remap and the list (https://tz.example/zones), not `[a](b.md)`.',
    ),
  )
})

test('on a terminal, lines fit, and colours replace quotes', () => {
  const shown = pageText(page, { color: true, columns: 40 })
  expect(shown).toContain('\u001b[1mremap\u001b[0m')
  expect(shown).toContain('    \u001b[36m. = [x](y.md)\u001b[0m')
  const plain = stripVTControlCharacters(shown).split('\n')
  expect(plain.filter((line) => line.length > 40)).toEqual([])
  expect(plain).toContain('- source (remap program): The program')
  expect(plain).toContain('  that runs on each event.')
  expect(plain.join('')).not.toContain('`')
})
