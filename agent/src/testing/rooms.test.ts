import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { importViolations, roomsText, tableOf, withDerived } from './rooms.ts'

const floors = [['ground'], ['left', 'right'], ['roof']]

function violationsOf(files: Record<string, string>): string[] {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'penstock-rooms-'))
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder.path, file)), { recursive: true })
    writeFileSync(join(folder.path, file), text)
  }
  return importViolations(folder.path, tableOf(floors, ['errors']), { heavy: ['roof'] })
}

test.each([
  ['a room may import a floor above it', { 'roof/a.ts': "import { x } from '../ground/x.ts'" }, []],
  ['a room may import itself, also from its subfolders', { 'left/deep/a.ts': "import { x } from '../x.ts'" }, []],
  [
    'a room may not import a floor below it',
    { 'ground/a.ts': "import type { X } from '../roof/x.ts'" },
    ['ground/a.ts imports roof/x.ts'],
  ],
  [
    'rooms on one floor do not import each other',
    { 'left/a.ts': "import '../right/x.ts'" },
    ['left/a.ts imports right/x.ts'],
  ],
  ['a dynamic import counts', { 'left/a.ts': "await import('../right/x.ts')" }, ['left/a.ts imports right/x.ts']],
  [
    'an import over several lines counts',
    { 'left/a.ts': "import {\n  x,\n} from '../right/x.ts'" },
    ['left/a.ts imports right/x.ts'],
  ],
  ['all rooms may import a shared file', { 'ground/a.ts': "export { x } from '../errors.ts'" }, []],
  [
    'a shared file imports no room',
    { 'errors.ts': "import { x } from './ground/x.ts'" },
    ['errors.ts imports ground/x.ts'],
  ],
  [
    'a room that is not in the table imports nothing',
    { 'attic/a.ts': "import '../ground/x.ts'" },
    ['attic/a.ts imports ground/x.ts'],
  ],
  [
    'shipped code does not import test code',
    { 'roof/a.ts': "import '../testing/x.ts'" },
    ['roof/a.ts imports testing/x.ts'],
  ],
  [
    'tests and their tools may import anything',
    { 'ground/a.test.ts': "import '../roof/x.ts'", 'testing/a.ts': "import '../roof/x.ts'" },
    [],
  ],
  [
    'a package can be restricted to rooms',
    { 'roof/a.ts': "import 'heavy'", 'left/a.ts': "import 'heavy/part.js'" },
    ['left/a.ts imports heavy/part.js'],
  ],
])('%s', (_, files, violations) => {
  expect(violationsOf(files)).toEqual(violations)
})

test('the list of rooms replaces the text between the comments of a page', () => {
  const page = 'Before.\n<!-- rooms: written by npm run generate -->\nold\n<!-- end of rooms -->\nAfter.\n'
  const text = roomsText([{ ground: 'stone' }, { left: 'wood', right: 'glass' }], 'Every room has a door.')
  const derived =
    '`ground` · `left`, `right`\n\n| Room | Content |\n|---|---|\n| `ground` | stone |\n| `left` | wood |\n| `right` | glass |\n\nEvery room has a door.'
  const written = `Before.\n<!-- rooms: written by npm run generate -->\n\n${derived}\n\n<!-- end of rooms -->\nAfter.\n`
  expect(withDerived(page, 'rooms', text)).toBe(written)
  expect(withDerived(written, 'rooms', text)).toBe(written)
  expect(() => withDerived('Nothing.', 'rooms', text)).toThrow('The page has no')
})
