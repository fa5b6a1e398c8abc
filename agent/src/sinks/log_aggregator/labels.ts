// Labels of an event, which choose its stream, and structured metadata, which follows the same rules. Names and values are
// templates, and a name that ends in `*` expands an object into one label for each of its members. Literal names are applied last,
// so event data cannot replace them, even after the replacement of forbidden characters.

import type { AnyEvent } from '../../delivery/batcher.ts'
import { keyPart, splitKey } from '../../event/joined-key.ts'
import { LogEvent } from '../../event/log.ts'
import type { Path } from '../../event/path.ts'
import { commonLikeness, compileTemplate, type Likeness, type Template } from '../../template.ts'

export interface StreamLabels {
  /** Fields that the templates refer to. */
  readonly paths: readonly Path[]
  /** True if all events have the same labels. */
  readonly isStatic: boolean
  /** The facts shared by events with the same labels; undefined if unknown. */
  readonly likeness: Likeness | undefined
  /**
   * The texts from which an event's labels are built, joined: equal texts mean equal labels. Calls `onMissing` for each
   * template that could not be rendered.
   */
  key(event: AnyEvent, onMissing: (option: string, template: Template) => void): string
  /** The labels for a key, sorted by name. */
  fromKey(key: string, faults: LabelFaults): ReadonlyMap<string, string>
}

/** Problems of names built from fields. */
export interface LabelFaults {
  /** A rendered name had to be changed. */
  invalid(): void
  /** Labels were lost, because their names became equal when forbidden characters were replaced. */
  lost(count: number): void
}

interface Label {
  readonly option: string
  readonly name: Template
  readonly value: Template
}

/** The event used to render static templates. */
const nothing = new LogEvent({})

/**
 * Marks a text that could not be rendered in the key. It cannot collide with a text, because lone surrogates are
 * replaced in texts.
 */
const absent = '\udfff'

export function compileLabels(
  options: Readonly<Record<string, string>>,
  option: string,
  timestampKey: string,
): StreamLabels {
  const labels: Label[] = Object.entries(options).map(([name, value]) => ({
    option: `${option}.${name}`,
    name: compileTemplate(name, timestampKey),
    value: compileTemplate(value, timestampKey),
  }))
  const dynamic: { readonly template: Template; readonly option: string }[] = labels.flatMap((label) =>
    [label.name, label.value]
      .filter((template) => !template.isStatic)
      .map((template) => ({ template, option: label.option })),
  )
  const single = dynamic.length === 1 ? dynamic[0] : undefined

  return {
    paths: dynamic.flatMap(({ template }) => template.paths),
    isStatic: dynamic.length === 0,
    likeness: commonLikeness(dynamic.map(({ template }) => template)),
    key(event, onMissing) {
      if (single !== undefined) {
        const text = single.template.render(event)
        if (text !== undefined) return text === absent ? text.toWellFormed() : text
        onMissing(single.option, single.template)
        return absent
      }
      let key = ''
      for (let index = 0; index < dynamic.length; index++) {
        const { template, option: place } = dynamic[index] as (typeof dynamic)[number]
        const text = template.render(event)
        if (text === undefined) onMissing(place, template)
        key += keyPart(text)
      }
      return key
    },
    fromKey(key, faults) {
      const texts = single === undefined ? splitKey(key) : [key === absent ? undefined : key]
      let at = 0
      const textOf = (template: Template): string | undefined =>
        template.isStatic ? template.render(nothing) : texts[at++]?.toWellFormed()
      const expanded = new Map<string, string>()
      const rendered = new Map<string, string>()
      const written = new Map<string, string>()
      const names: string[] = []
      const replaced: string[] = []
      for (const label of labels) {
        const name = textOf(label.name)
        const value = textOf(label.value)
        if (name === undefined || value === undefined) continue
        if (name.endsWith('*')) expand(name.slice(0, -1), value, expanded, names, replaced)
        else if (label.name.isStatic) {
          written.set(name, value)
          names.push(name)
        } else {
          const valid = labelName(name)
          if (valid !== name) faults.invalid()
          if (valid !== undefined) {
            rendered.set(valid, value)
            names.push(valid)
            if (valid !== name) replaced.push(valid)
          }
        }
      }
      if (replaced.length > 0) {
        const unclear = new Set(replaced)
        const lost = names.filter((name) => unclear.has(name)).length - unclear.size
        if (lost > 0) faults.lost(lost)
      }
      const all = new Map([...expanded, ...rendered, ...written])
      return new Map([...all].sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
    },
  }
}

/**
 * Returns one label for each member of a JSON object; none for any other text. @param names receives each name @param
 * replaced receives the names in which characters were replaced
 */
function expand(prefix: string, text: string, into: Map<string, string>, names: string[], replaced: string[]): void {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return // not an object, so no labels
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return
  for (const [name, value] of Object.entries(parsed)) {
    if (value === null) continue
    const given = prefix + name.toWellFormed()
    const valid = labelName(given)
    if (valid === undefined) continue
    into.set(valid, (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed())
    names.push(valid)
    if (valid !== given) replaced.push(valid)
  }
}

/** A label name with its forbidden characters replaced. Undefined if nothing is left. */
function labelName(name: string): string | undefined {
  if (name === '') return undefined
  const valid = name.replace(/[^0-9A-Za-z_]/g, '_')
  return /^[0-9]/.test(valid) ? `_${valid}` : valid
}

const validName = /^[a-zA-Z_][a-zA-Z0-9_]*\*?$|^\*$/

/** Whether a user may use this label name. */
export function isLabelName(name: string): boolean {
  return name.includes('{{') || validName.test(name)
}
