// Import rules between folders. Each workspace declares its rooms from the top floor down. A test checks all imports against the
// declaration, and the ARCHITECTURE page shows it. A room is a folder or a single file directly in `src`.

import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'

/** Rooms from the top down. A room imports from the floors above its own; rooms on one floor do not import each other. */
export type Floors = readonly (readonly string[])[]

/** The other rooms that each room may import. */
export type RoomTable = Readonly<Record<string, readonly string[]>>

export interface Import {
  /** Path of the importing file, relative to the source folder. */
  readonly file: string
  /** Path of the imported file, relative to the source folder, or the name of a package. */
  readonly imports: string
  readonly isPackage: boolean
}

/** All rooms may also import the files in `seenByAll`, which import only each other. */
export function tableOf(floors: Floors, seenByAll: readonly string[] = []): RoomTable {
  const table: Record<string, readonly string[]> = {}
  for (const room of seenByAll) table[room] = seenByAll
  const above: string[] = []
  for (const floor of floors) {
    for (const room of floor) table[room] = [...seenByAll, ...above]
    above.push(...floor)
  }
  return table
}

/** Rooms of both workspaces that do not ship. They may import all rooms that ship, and no room that ships imports them. */
const developmentFloors: Floors = [['testing'], ['tools'], ['bench', 'fuzz', 'conformance']]

export const developmentRooms: readonly string[] = developmentFloors.flat()

/** Static and dynamic imports, including types. */
const importPattern = /(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g

/** All imports of TypeScript files that ship, which excludes tests and the rooms in `leaveOut`. */
export function importsIn(folder: string, leaveOut: readonly string[] = developmentRooms): Import[] {
  const found: Import[] = []
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  for (const file of files.sort()) {
    if (file.endsWith('.test.ts') || leaveOut.includes(roomOf(file))) continue
    for (const [, specifier] of readFileSync(join(folder, file), 'utf8').matchAll(importPattern)) {
      const name = specifier as string
      const isPackage = !name.startsWith('.')
      const imports = isPackage ? name : relative(folder, resolve(folder, file, '..', name))
      found.push({ file, imports, isPackage })
    }
  }
  return found
}

/** The folder or file in `src` for a path: `sinks` for `sinks/http.ts`, `errors` for `errors.ts`. */
export function roomOf(path: string): string {
  return (path.split(sep)[0] as string).replace(/\.ts$/, '')
}

/**
 * Imports that the table does not allow, as `file imports path`. A room that is not in the table may not import or be imported. `packages`
 * contains the rooms that may import a package, or a file of it; other packages are not checked.
 */
export function importViolations(
  folder: string,
  table: RoomTable,
  packages: Readonly<Record<string, readonly string[]>> = {},
): string[] {
  return importsIn(folder)
    .filter(({ file, imports, isPackage }) => {
      const from = roomOf(file)
      if (!isPackage) return roomOf(imports) !== from && table[from]?.includes(roomOf(imports)) !== true
      const restricted = Object.keys(packages).find((name) => imports === name || imports.startsWith(`${name}/`))
      return restricted !== undefined && packages[restricted]?.includes(from) !== true
    })
    .map(({ file, imports }) => `${file} imports ${imports}`)
}

/** The package name through which another workspace imports the agent's development rooms, as in `@penstock/agent/testing/clock`. */
const agentPackage = '@penstock/agent/'

/** Upward imports of development rooms, as `file imports path`. Rooms with the same name in both workspaces are on the same floor. */
export function developmentViolations(folder: string): string[] {
  const table = tableOf(developmentFloors)
  return importsIn(folder, [])
    .filter(({ file, imports, isPackage }) => {
      const from = roomOf(file)
      if (isPackage && !imports.startsWith(agentPackage)) return false
      const to = roomOf(isPackage ? imports.slice(agentPackage.length) : imports)
      return (
        developmentRooms.includes(from) && developmentRooms.includes(to) && from !== to && !table[from]?.includes(to)
      )
    })
    .map(({ file, imports }) => `${file} imports ${imports}`)
}

/** Replaces the derived part of a page, between two comments, with `text`. */
export function withDerived(page: string, part: string, text: string): string {
  const start = `<!-- ${part}: written by npm run generate -->`
  const end = `<!-- end of ${part} -->`
  const from = page.indexOf(start)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new TypeError(`The page has no "${start}" followed by "${end}".`)
  return `${page.slice(0, from + start.length)}\n\n${text.trim()}\n\n${page.slice(to)}`
}

/** Rooms with their descriptions, by floor from the top down. */
export type DescribedFloors = readonly Readonly<Record<string, string>>[]

export const floorsOf = (described: DescribedFloors): Floors => described.map((floor) => Object.keys(floor))

/** The list of rooms for an ARCHITECTURE page, with a last paragraph. */
export function roomsText(described: DescribedFloors, last: string): string {
  const line = floorsOf(described).map((floor) => floor.map((room) => `\`${room}\``).join(', '))
  const rows = described.flatMap((floor) => Object.entries(floor).map(([room, holds]) => `| \`${room}\` | ${holds} |`))
  return [line.join(' · '), '', '| Room | Content |', '|---|---|', ...rows, '', last].join('\n')
}
