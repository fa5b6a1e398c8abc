// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The tag that a rule of `rewrite_tag_filter` sets. If it has parts that depend on the record, a transform keeps it in `%tag`.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { childrenOf, isOn, type Plugged } from './element.ts'
import { element } from './element-maker.ts'
import { regexFlags, rubyRegex } from './ruby-text.ts'
import type { Element } from './syntax.ts'
import { anyTag, isKnown, type Tag, tagProgram } from './tags.ts'

interface Rule {
  /** The new tag as written. */
  readonly tag: string
  /** The text that the rule tests, as an expression. */
  readonly value: string
  readonly pattern: string
}

const placeholders = /(\$\{[^}]*\}|__[A-Z_]+(?:\[\d+\])?__|\$\d+)/

export function retagged(
  section: Plugged,
  rule: Rule,
  old: Tag,
): { readonly tag: Tag; readonly steps: readonly Step[] } {
  const prefix = lastValue(section, 'remove_tag_prefix')
  const base = prefix === undefined ? old.text : withoutPrefix(old.text, prefix)
  const parts = rule.tag.split(placeholders).filter((part) => part !== '')
  const texts = parts.map((part) => fixedText(part, base))
  const text = texts.map((part) => part ?? '*').join('')
  const isWhole = texts.every((part) => part !== undefined)
  const isOld = isWhole && text.includes(base)
  const plain: Tag = {
    text,
    isOfPods: old.isOfPods && isOld,
    isOfFile: old.isOfFile === true && isOld,
    samples: isOld ? old.samples : undefined,
  }
  if (isWhole) return { tag: plain, steps: [] }
  const expressions = parts.map((part) => expressionOf(part, section))
  const readsTag = expressions.some((part) => part?.includes('tag'))
  if (expressions.includes(undefined) || (readsTag && !isKnown(old))) return { tag: plain, steps: [] }
  const [body = rule.pattern, flags = ''] = /^\/(.*)\/([imx]*)$/s.exec(rule.pattern)?.slice(1) ?? []
  const lines = [
    ...(readsTag ? [tagProgram(old)] : []),
    ...(readsTag && prefix !== undefined
      ? [
          `if starts_with(tag, ${textLiteral(prefix)}) { tag = replace(replace(tag, ${textLiteral(prefix)}, "", count: 1), r'^\\.', "") }`,
        ]
      : []),
    ...(/\$\d/.test(rule.tag)
      ? [`groups = parse_regex(${rule.value}, r'${regexFlags(flags)}${rubyRegex(body)}', numeric_groups: true) ?? {}`]
      : []),
    `%tag = ${expressions.join(' + ')}`,
  ]
  return { tag: { text, isOfPods: false, isKept: true }, steps: [{ type: 'remap', text: lines.join('\n') }] }
}

/** A part of the new tag without the record; undefined if it depends on the record. */
function fixedText(part: string, base: string): string | undefined {
  if (part === '${tag}' || part === '__TAG__') return base
  const index = partIndex(part)
  if (index !== undefined && !base.includes('*')) return base.split('.')[index] ?? ''
  return placeholders.test(part) ? undefined : part
}

function expressionOf(part: string, section: Plugged): string | undefined {
  if (part === '${tag}' || part === '__TAG__') return 'tag'
  if (part === '${hostname}' || part === '__HOSTNAME__') return '(get_hostname() ?? "")'
  const index = partIndex(part)
  if (index !== undefined) return `(string(get(split(tag, "."), [${index}]) ?? null) ?? "")`
  const group = /^\$(\d+)$/.exec(part)?.[1]
  if (group === undefined) return placeholders.test(part) ? undefined : textLiteral(part)
  const text = `(string(get(groups, ["${group}"]) ?? null) ?? "")`
  if (!isOn(lastValue(section, 'capitalize_regex_backreference'), false)) return text
  return `upcase(truncate(${text}, 1)) + downcase(replace(${text}, r'(?s)^.', ""))`
}

function partIndex(part: string): number | undefined {
  const index = /^(?:\$\{tag_parts\[(\d+)\]\}|__TAG_PARTS\[(\d+)\]__)$/.exec(part)
  return index === null ? undefined : Number(index[1] ?? index[2])
}

/** The rules of a match, also in the syntax before version 2.0 of the plugin. */
export function rulesOf(section: Plugged): readonly Element[] {
  const old = section.entries.flatMap(({ key, value, file, line }) => {
    const number = /^rewriterule(\d+)$/.exec(key)?.[1]
    const [, field, sign, regex, tag] = /^(\S+)\s+(!?)(.+?)\s+(\S+)$/s.exec(value) ?? []
    if (number === undefined || field === undefined) return []
    const rule = element('rule', { file, line }, '', [
      ['key', field],
      ['pattern', (regex ?? '').replace(/^"(.*)"$/s, '$1')],
      ['tag', tag ?? ''],
      ['invert', String(sign === '!')],
    ])
    return [{ number: Number(number), rule }]
  })
  const sorted = old.toSorted((one, other) => one.number - other.number).map(({ rule }) => rule)
  return [...childrenOf(section.element, 'rule'), ...sorted]
}

/** A tag without a prefix and the period behind it. */
function withoutPrefix(tag: string, prefix: string): string {
  return tag.startsWith(prefix) ? tag.slice(prefix.length).replace(/^\./, '') : tag
}

/** A tag without one prefix and with another one; undefined if the tag stays the same. */
export function prefixed(
  old: Tag,
  removed: string | undefined,
  added: string | undefined,
): { readonly tag: Tag; readonly steps: readonly Step[] } | undefined {
  if (removed === undefined && added === undefined) return undefined
  const start = removed === undefined ? '' : `${removed}.`
  const before = added === undefined ? '' : `${added}.`
  const text = `${before}${old.text.startsWith(start) ? old.text.slice(start.length) : old.text}`
  const tag = { ...old, text }
  if (old.isKept !== true) return text === old.text ? undefined : { tag, steps: [] }
  const lines = [
    tagProgram(old),
    ...(start === ''
      ? []
      : [`if starts_with(tag, ${textLiteral(start)}) { tag = replace(tag, ${textLiteral(start)}, "", count: 1) }`]),
    before === '' ? '%tag = tag' : `%tag = ${textLiteral(before)} + tag`,
  ]
  return { tag, steps: [{ type: 'remap', text: lines.join('\n') }] }
}

/** The step that `tag_normaliser` becomes: the new tag has the values of fields of the record. */
export function normalised(section: Plugged): { readonly tag: Tag; readonly steps: readonly Step[] } {
  const format = lastValue(section, 'format') ?? '${namespace_name}.${pod_name}.${container_name}'
  const prefix = lastValue(section, 'key_prefix') ?? 'kubernetes'
  const unknown = textLiteral(lastValue(section, 'unknown') ?? 'unknown')
  const lines: string[] = []
  const parts = format.split(/(\$\{[\w./-]+\})/).filter((part) => part !== '')
  const texts = parts.map((part, index) => {
    const name = /^\$\{(.*)\}$/.exec(part)?.[1]
    if (name === undefined) return textLiteral(part)
    const path = [...(prefix === '' ? [] : prefix.split('.')), ...name.split('.')]
    lines.push(
      `part_${index} = to_string(${fieldLiteral(path)}) ?? ""`,
      `if part_${index} == "" { part_${index} = ${unknown} }`,
    )
    return `part_${index}`
  })
  const text = [...lines, `%tag = ${texts.join(' + ')}`].join('\n')
  return { tag: anyTag, steps: [{ type: 'remap', text }] }
}
