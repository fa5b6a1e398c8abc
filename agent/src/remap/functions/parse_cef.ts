// Function `parse_cef`.

import { setField, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const names = ['cefVersion', 'deviceVendor', 'deviceProduct', 'deviceVersion', 'deviceEventClassId', 'name', 'severity']
const key = /[ |]+([^ =\\]+)=/y
const labelled = /^(?:c6a[1-4]|cfp[1-4]|cn[1-3]|cs[1-6]|deviceCustomDate[12]|flexDate1|flexString[12])$/

export const parseCef = defineFunction({
  name: 'parse_cef',
  category: 'Parse',
  summary: 'Parses a line of the Common Event Format. All values stay text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line; text before `CEF:` is skipped.' },
    {
      name: 'translate_custom_fields',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to name custom fields (`cs1`) by their labels (`cs1Label`).',
    },
    {
      name: 'strict',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether an invalid extension is an error; otherwise the fields before the invalid part are kept.',
    },
  ],
  returns: kinds.objectWith(
    {
      cefVersion: kinds.string,
      deviceVendor: kinds.string,
      deviceProduct: kinds.string,
      deviceVersion: kinds.string,
      deviceEventClassId: kinds.string,
      name: kinds.string,
      severity: kinds.string,
    },
    kinds.string,
  ),
  // A custom label without a value makes a field null, possibly one of those above.
  nominal: (call) => call.constant('translate_custom_fields') !== false,
  fallible: 'always',
  errors: ['The line has another format.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'parse_cef!("CEF:0|v|p|1|id|n|5|src=10.0.0.1 msg=two words").msg', result: '"two words"' },
    {
      source: 'parse_cef!("CEF:0|v|p|1|id|n|5|cs1Label=room cs1=gate", translate_custom_fields: true).room',
      result: '"gate"',
    },
    {
      source:
        'v = parse_cef!(s\'CEF:0|v| p |1||a\\|b|"5"| k="q" e= p=C:\\\\dir\\n l=x\\=y  \')\n[v.deviceProduct, v.deviceEventClassId, v.name, v.severity, v.k, v.e, v.p, v.l]',
      result: '["p", "", "a|b", "5", "q", "", "C:\\\\dir\\n", "x=y"]',
    },
    {
      source:
        '[parse_cef("CEF:0|v|p|1|id|n|5|a=b=c") ?? 1, parse_cef("CEF:0|v|p|1|id|n|5") ?? 2, parse_cef("CEF:0|v|p|1|id|n|5|cs1=x", translate_custom_fields: true) ?? 3]',
      result: '[1, 2, 3]',
    },
    { source: 'parse_cef("no such line") ?? {}', result: '{  }' },
  ],
  compile:
    () =>
    (text: string, translate: boolean, strict: boolean): Result => {
      const extension: [name: string, value: string][] = []
      const header: [name: string, value: string][] = []
      const start = text.indexOf('CEF:')
      let at = start + 4
      for (const name of names) {
        const [value, end] = start < 0 ? [undefined, 0] : headerValue(text, at)
        if (value === undefined) return failure('the text has no header of CEF with seven fields')
        header.push([name, value])
        at = end
      }
      for (;;) {
        const name = keyAt(text, at)
        if (name === undefined) break
        const [value, end] = extensionValue(text, key.lastIndex, strict)
        if (value === undefined) break
        extension.push([name, value])
        at = end
      }
      if (extension.length === 0) {
        if (text[at] !== '|') return failure('the header of CEF does not end with `|`')
        at++
      }
      if (strict && text.slice(at).trim() !== '') return failure('Could not parse whole line successfully')
      const last = extension.at(-1)
      if (last !== undefined) last[1] = last[1].replace(/ +$/, '')
      const fields: ValueObject = {}
      const custom = new Map<string, { label?: string; value?: string }>()
      for (const [name, text] of [...extension, ...header]) {
        const value = text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
        const base = name.endsWith('Label') ? name.slice(0, -5) : name
        if (!translate || !labelled.test(base)) {
          setField(fields, name, value)
          continue
        }
        const pair = custom.get(base) ?? {}
        const part = name === base ? 'value' : 'label'
        if (pair[part] !== undefined) return failure(`Custom field with duplicate ${part}`)
        pair[part] = value
        custom.set(base, pair)
      }
      for (const { label, value } of custom.values()) {
        if (label === undefined) return failure('Custom field with missing label or value')
        setField(fields, label, value ?? null)
      }
      return fields
    },
})

type Read = [value: string | undefined, end: number]

/** A header field up to the next `|` that is not escaped by a backslash. */
function headerValue(text: string, from: number): Read {
  let at = text[from] === '|' ? from + 1 : from
  let value = ''
  while (at < text.length && text[at] !== '|') {
    if (text[at] === '\\') {
      at++
      if (text[at] !== '|' && text[at] !== '\\') return [undefined, at]
    }
    value += text[at]
    at++
  }
  return [value.trim(), at]
}

/** The key at a position, after blanks; `key.lastIndex` is then after its `=`. */
function keyAt(text: string, at: number): string | undefined {
  key.lastIndex = at
  return key.exec(text)?.[1]
}

/** A value extends to the next key; undefined if it does not begin, or ends with a backslash. */
function extensionValue(text: string, from: number, strict: boolean): Read {
  let value = ''
  let at = from
  while (at < text.length) {
    const character = text[at] as string
    if (character === '=' && strict) return [at === from ? undefined : value, at]
    if ((character === ' ' || character === '|') && keyAt(text, at) !== undefined) break
    if (character !== '\\') {
      value += character
      at++
      continue
    }
    const escaped = text[at + 1]
    if (escaped === undefined) return [undefined, at]
    const known = escaped === '=' || escaped === '\\' ? escaped : escaped === 'n' || escaped === 'r' ? '\n' : undefined
    value += known ?? '\\'
    at += known === undefined ? 1 : 2
  }
  return [value, at]
}
