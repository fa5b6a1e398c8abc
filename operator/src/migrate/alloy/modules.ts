// Expands `declare` modules and `foreach` templates: the components of the module or template replace each use.
// Their labels begin with the label of the use, so that two uses do not collide.

import type { Included, NamedText } from '../draft.ts'
import { idOf } from './names.ts'
import { type Attribute, type Block, type Expression, parseAlloy } from './syntax.ts'

/** Modules nested deeper than this are not expanded. */
const maxDepth = 10
/** Maximum number of components of all expansions together. */
const maxBlocks = 2000

interface Scope {
  /** The prefix for the labels of the components inside. */
  readonly prefix: string
  /** Ids of the components inside. */
  readonly inside: ReadonlySet<string>
  /** The value for the beginning of a path, and the number of path segments it replaces; undefined if the use does not define it. */
  readonly meaningOf: (path: readonly string[]) => { readonly value: Expression; readonly length: number } | undefined
}

const nothing = (line: number): Expression => ({ kind: 'literal', line, value: null })
const attributeOf = (block: Block, name: string) => block.attributes.find((each) => each.name === name)?.value

/** Reports an attribute of a use or an import that the module or the import does not have. */
type Unknown = (block: Block, attribute: Attribute) => void

/** Returns the text of a file that an import names; undefined if it is not available. */
type ReadFile = (path: string) => string | undefined

/** Modules by the names of their uses. */
interface Known {
  readonly modules: ReadonlyMap<string, Block>
  readonly unknown: Unknown
}

/** The blocks, with uses of `declare` and `foreach` expanded to components. */
export function withoutModules(
  blocks: readonly Block[],
  unknown: Unknown = () => {},
  readFile: ReadFile = () => undefined,
): readonly Block[] {
  const declared = new Map(blocks.flatMap((block) => (block.name === 'declare' ? [[block.label ?? '', block]] : [])))
  const byImport = new Map(blocks.map((block) => [block, importedBy(block, readFile)]))
  const imported = [...byImport.values()].flat()
  const isRead = (block: Block) => (byImport.get(block)?.length ?? 0) > 0
  for (const block of blocks.filter(isRead)) {
    const known = block.name === 'import.file' ? fileOptions : ['content']
    for (const each of block.attributes) if (!known.includes(each.name)) unknown(block, each)
  }
  return expanded(
    blocks.filter((block) => !isRead(block)),
    { modules: new Map([...declared, ...imported]), unknown },
    0,
  )
}

/** Options of `import.file`. How a file is watched has no meaning here. */
const fileOptions = ['filename', 'detector', 'poll_frequency']

/** The path in an expression: a text, or texts that `file.path_join` joins. Other parts, such as `module_path`, are left out. */
function pathOf(expression: Expression | undefined): string | undefined {
  if (expression?.kind === 'literal') return typeof expression.value === 'string' ? expression.value : undefined
  if (expression?.kind !== 'call' || expression.name !== 'file.path_join') return undefined
  const parts = expression.values.map(pathOf).filter((part) => part !== undefined)
  return parts.length === 0 ? undefined : parts.join('/')
}

/** The modules of an import, and whether their lines are those of the file with the import. */
function modulesIn(block: Block, readFile: ReadFile): readonly Block[] {
  if (block.name === 'import.file') {
    const path = pathOf(attributeOf(block, 'filename'))
    const text = path === undefined ? undefined : readFile(path)
    if (text === undefined) return []
    const { blocks, problems } = parseAlloy(text)
    return problems.length > 0 ? [] : blocks.filter(isModule).map((each) => onLine(each, block.line))
  }
  const content = block.name === 'import.string' ? attributeOf(block, 'content') : undefined
  if (content?.kind !== 'literal' || typeof content.value !== 'string') return []
  const { blocks, problems } = parseAlloy(content.value)
  return problems.length > 0 ? [] : blocks.filter(isModule).map((each) => lowered(each, content.line - 1))
}

const isModule = ({ name }: Block) => name === 'declare'

/** A value in which all parts are on one line, that of the import, because they come from another file. */
function onLine<Value>(value: Value, line: number): Value {
  if (Array.isArray(value)) return value.map((item) => onLine(item, line)) as Value
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, item]) => [name, name === 'line' ? line : onLine(item, line)])
  return Object.fromEntries(entries) as Value
}

/** The modules of an import, by the names of their uses. Each module can use the others. */
function importedBy(block: Block, readFile: ReadFile): readonly (readonly [string, Block])[] {
  const modules = modulesIn(block, readFile)
  return modules.map((each) => [
    `${block.label}.${each.label}`,
    { ...each, blocks: [...each.blocks, ...modules.filter((other) => other !== each)] },
  ])
}

/** A block with its lines counted from the beginning of the file that contains its text. */
function lowered(block: Block, above: number): Block {
  const attribute = (each: Attribute): Attribute => ({ ...each, line: each.line + above })
  return {
    ...block,
    line: block.line + above,
    attributes: block.attributes.map(attribute),
    blocks: block.blocks.map((each) => lowered(each, above)),
  }
}

function expanded(
  blocks: readonly Block[],
  known: Known,
  depth: number,
  exports = new Map<string, Expression>(),
): readonly Block[] {
  const found = blocks.flatMap((block): readonly Block[] => {
    const module = known.modules.get(block.name)
    if (block.name === 'declare') return []
    if (module !== undefined && depth < maxDepth) return used(module, block, known, depth, exports)
    if (block.name === 'foreach' && depth < maxDepth) return repeated(block, known, depth) ?? [block]
    return [block]
  })
  if (exports.size === 0 || found.length > maxBlocks) return found
  const scope = exportScope(exports)
  return found.map((block) => blockIn(block, scope))
}

/** A scope in which exports of modules have their values. A module of an import has two names. */
function exportScope(exports: ReadonlyMap<string, Expression>): Scope {
  const meaningOf = (path: readonly string[]) => {
    for (const length of [3, 4]) {
      const value = exports.get(path.slice(0, length).join('.'))
      if (value !== undefined) return { value, length }
    }
    return undefined
  }
  return { prefix: '', inside: new Set(), meaningOf }
}

/** The components of a module for one use. */
function used(
  module: Block,
  use: Block,
  above: Known,
  depth: number,
  exports: Map<string, Expression>,
): readonly Block[] {
  const meaningOf = (path: readonly string[]) => {
    if (path[0] !== 'argument' || path[2] !== 'value') return undefined
    const argument = module.blocks.find(({ name, label }) => name === 'argument' && label === path[1])
    const value = attributeOf(use, path[1] ?? '') ?? (argument && attributeOf(argument, 'default')) ?? nothing(use.line)
    return { value, length: 3 }
  }
  const names = module.blocks.filter(({ name }) => name === 'argument').map(({ label }) => label)
  for (const each of use.attributes) if (!names.includes(each.name)) above.unknown(use, each)
  const own = module.blocks.filter(({ name }) => name === 'declare').map((block) => [block.label ?? '', block] as const)
  const inner = module.blocks.filter(({ name }) => !['argument', 'export'].includes(name))
  const scope = scopeOf(inner, use.label ?? use.name, meaningOf)
  const below = new Map<string, Expression>()
  const components = expanded(
    inner.map((block) => blockIn(block, scope)),
    { ...above, modules: new Map([...above.modules, ...own]) },
    depth + 1,
    below,
  )
  for (const each of module.blocks) {
    const value = each.name === 'export' ? attributeOf(each, 'value') : undefined
    if (value === undefined) continue
    // The value may be an export of a module inside.
    const found = expressionIn(expressionIn(value, scope), exportScope(below))
    exports.set(`${use.name}.${use.label}.${each.label}`, found)
  }
  return components
}

/** The components of a template for each item; undefined if the list is not a literal. */
function repeated(block: Block, known: Known, depth: number): readonly Block[] | undefined {
  const collection = attributeOf(block, 'collection')
  const variable = attributeOf(block, 'var')
  const template = block.blocks.find(({ name }) => name === 'template')
  if (collection?.kind !== 'list' || variable?.kind !== 'literal' || template === undefined) return undefined
  const all = collection.items.flatMap((value, index) => {
    const meaningOf = (path: readonly string[]) => (path[0] === variable.value ? { value, length: 1 } : undefined)
    const scope = scopeOf(template.blocks, `${block.label ?? 'each'}_${index + 1}`, meaningOf)
    return template.blocks.map((each) => blockIn(each, scope))
  })
  return expanded(all, known, depth + 1)
}

const scopeOf = (blocks: readonly Block[], prefix: string, meaningOf: Scope['meaningOf']): Scope => ({
  prefix,
  inside: new Set(blocks.filter(({ label }) => label !== undefined).map(idOf)),
  meaningOf,
})

/** A block of a module. The labels of blocks within it do not name components. */
function blockIn(block: Block, scope: Scope): Block {
  const isInside = scope.inside.has(idOf(block))
  return {
    ...block,
    label: isInside ? `${scope.prefix}_${block.label}` : block.label,
    attributes: block.attributes.map((each) => ({ ...each, value: expressionIn(each.value, scope) })),
    blocks: block.blocks.map((each) => blockIn(each, { ...scope, inside: without(scope.inside, each) })),
  }
}

/** Blocks within components have labels that do not name components. */
const without = (ids: ReadonlySet<string>, block: Block) =>
  ids.has(idOf(block)) ? new Set([...ids].filter((id) => id !== idOf(block))) : ids

function expressionIn(expression: Expression, scope: Scope): Expression {
  const visit = (each: Expression) => expressionIn(each, scope)
  switch (expression.kind) {
    case 'literal':
      return expression
    case 'list':
      return { ...expression, items: expression.items.map(visit) }
    case 'object':
      return { ...expression, members: expression.members.map(([name, value]) => [name, visit(value)] as const) }
    case 'index':
      return { ...expression, of: visit(expression.of), index: visit(expression.index) }
    case 'call':
      return { ...expression, values: expression.values.map(visit) }
    case 'binary':
      return { ...expression, left: visit(expression.left), right: visit(expression.right) }
    case 'unary':
      return { ...expression, value: visit(expression.value) }
    case 'path':
      return pathIn(expression, scope)
  }
}

function pathIn(expression: Expression & { readonly kind: 'path' }, scope: Scope): Expression {
  const { path, line } = expression
  const found = scope.meaningOf(path)
  if (found !== undefined) {
    let value = found.value
    for (const name of path.slice(found.length)) {
      value =
        value.kind === 'path'
          ? { ...value, path: [...value.path, name] }
          : { kind: 'index', line, of: value, index: { kind: 'literal', line, value: name } }
    }
    return value
  }
  for (let length = path.length; length > 1; length--) {
    if (!scope.inside.has(path.slice(0, length).join('.'))) continue
    const label = `${scope.prefix}_${path[length - 1]}`
    return { ...expression, path: [...path.slice(0, length - 1), label, ...path.slice(length)] }
  }
  return expression
}

/** The text of a module: one of the files of the configuration, which may be elsewhere than where Alloy reads it, or a file beside them. */
export function moduleFile(
  path: string,
  from: string,
  files: readonly NamedText[],
  included: Included,
): string | undefined {
  const base = path.split('/').at(-1)
  const given = files.find(({ file }) => file !== from && file.split('/').at(-1) === base)
  if (given !== undefined) return given.text
  const found = path.startsWith('/') ? [] : included(path, from)
  return found[0]?.text
}
