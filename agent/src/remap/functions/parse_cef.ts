// Function `parse_cef`.

import { fieldNames, setField, type ValueObject } from '../../event/value.ts'
import { bounded } from '../../formats/regex-linear.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const header = bounded(
  /CEF:(\d+)\|((?:[^|\\]|\\.)*)\|((?:[^|\\]|\\.)*)\|((?:[^|\\]|\\.)*)\|((?:[^|\\]|\\.)*)\|((?:[^|\\]|\\.)*)\|((?:[^|\\]|\\.)*)(?:\||$)/s,
)
const names = ['cefVersion', 'deviceVendor', 'deviceProduct', 'deviceVersion', 'deviceEventClassId', 'name', 'severity']
const keyOf = bounded(/(?:^|\s)([\w.[\]-]+)=/g)
const labelled = /^(?:c6a[1-4]|cfp[1-4]|cn[1-3]|cs[1-6]|deviceCustomDate[12]|flexDate1|flexString[12])$/

export const parseCef = defineFunction({
  name: 'parse_cef',
  category: 'Parse',
  summary: 'Reads a line of the Common Event Format. Every value stays text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The line; what stands before `CEF:` is passed over.' },
    {
      name: 'translate_custom_fields',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Name custom fields (`cs1`) by their labels (`cs1Label`).',
    },
    {
      name: 'strict',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Fail where the extension has another form; else keep what was read before that.',
    },
  ],
  returns: kinds.objectEach(kinds.string),
  fallible: 'always',
  errors: ['The line has another form.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'parse_cef!("CEF:0|v|p|1|id|n|5|src=10.0.0.1 msg=two words").msg', result: '"two words"' },
    {
      source: 'parse_cef!("CEF:0|v|p|1|id|n|5|cs1Label=room cs1=gate", translate_custom_fields: true).room',
      result: '"gate"',
    },
    { source: 'parse_cef("no such line") ?? {}', result: '{  }' },
  ],
  compile:
    () =>
    (text: string, translate: boolean, strict: boolean): Result => {
      const match = header.exec(text)
      if (match === null) return failure('Could not parse whole line successfully')
      const fields: ValueObject = {}
      names.forEach((name, index) => {
        fields[name] = (match[index + 1] as string).replace(/\\([|\\])/g, '$1')
      })
      const extension = text.slice(match.index + match[0].length)
      // A value goes as far as the next word with an equals sign behind it.
      const keys = [...extension.matchAll(keyOf)]
      const before = extension.slice(0, keys[0]?.index ?? extension.length)
      if (strict && before.trim() !== '') return failure('Could not parse whole line successfully')
      keys.forEach((key, index) => {
        const raw = extension.slice(key.index + key[0].length, keys[index + 1]?.index ?? extension.length).trimEnd()
        const value = raw.replace(/\\([=\\nr|])/g, (_, escaped: string) =>
          escaped === 'n' ? '\n' : escaped === 'r' ? '\r' : escaped,
        )
        setField(fields, key[1] as string, value)
      })
      return translate ? translated(fields) : fields
    },
})

function translated(fields: ValueObject): ValueObject {
  const result: ValueObject = {}
  for (const name of fieldNames(fields)) {
    const base = name.endsWith('Label') ? name.slice(0, -5) : name
    const label = fields[`${base}Label`]
    if (!labelled.test(base) || typeof label !== 'string' || fields[base] === undefined) result[name] = fields[name]
    else if (name === base) setField(result, label, fields[base])
  }
  return result
}
