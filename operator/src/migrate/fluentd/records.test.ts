// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The records that filters make of an event: those of configurations before version 0.14, and those of code that changes the record itself.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

async function check(text: string, record: object, expected: Readonly<Record<string, unknown>>): Promise<void> {
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: '2026-11-24T10:11:12Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
}

const old = (lines: string) =>
  `<source>\n  type tail\n  path /srv/app.log\n  format json\n  tag app.log\n</source>\n<filter **>\n  type record_transformer\n  ${lines}\n</filter>\n<match **>\n  type stdout\n</match>\n`

test('before version 0.14, names are fields of the record', async () => {
  const lines = '<record>\n    a ${level}\n    b [${level}] ${tag_parts[0]} ${none}\n  </record>'
  await check(old(lines), { level: 'warn' }, { a: 'warn', b: '[warn] app ' })
})

test('before version 0.14, names in Ruby are fields of the record', async () => {
  const lines = 'enable_ruby\n  <record>\n    a ${chain.split(",")[0]}\n    b ${tag}-${level.upcase}\n  </record>'
  await check(old(lines), { chain: '10.0.0.1,10.0.0.2', level: 'warn' }, { a: '10.0.0.1', b: 'app.log-WARN' })
})

test('from version 0.14, a name that is not a placeholder has no value', async () => {
  const lines = '<record>\n    a ${level}\n  </record>'
  const text = old(lines).replace('  format json\n', '  <parse>\n    @type json\n  </parse>\n')
  await check(text, { level: 'warn' }, { a: null })
})

const modifier = (lines: string) =>
  `<source>\n  @type tail\n  path /srv/app.log\n  tag app.log\n  <parse>\n    @type json\n  </parse>\n</source>\n<filter **>\n  @type record_modifier\n${lines}\n</filter>\n<match **>\n  @type stdout\n</match>\n`

test('code that sets members of objects within the record', async () => {
  const value =
    '${if all = record.dig("kubernetes", "labels"); record["kubernetes"]["labels"] = {}.tap { |made| all.each { |name, value| made[name.gsub(/[.\\/]/, "_")] = value } }; end}'
  await check(
    modifier(`  <record>\n    _one_ ${value}\n  </record>\n  remove_keys _one_`),
    { kubernetes: { labels: { 'app.io/name': 'shop' } } },
    { kubernetes: { labels: { app_io_name: 'shop' } } },
  )
})

test('code that sets fields of the record, for the values after it', async () => {
  await check(
    modifier(
      '  <record>\n    _one_ ${record["b"] = record["a"].upcase; nil}\n    c ${record["b"]}!\n  </record>\n  remove_keys _one_',
    ),
    { a: 'x' },
    { a: 'x', b: 'X', c: 'X!' },
  )
})

test('a list of fields to keep applies to new fields, too, and not at all beside one of fields to remove', async () => {
  const record = { a: 1, b: 2 }
  await check(modifier('  <record>\n    c 3\n    d 4\n  </record>\n  whitelist_keys a,c'), record, { a: 1, c: '3' })
  await check(modifier('  whitelist_keys a\n  remove_keys b'), { ...record, e: 5 }, { a: 1, e: 5 })
})

test('code that only loads a module needs no counterpart', async () => {
  await check(modifier("  prepare_value require 'json'\n  <record>\n    b x\n  </record>"), { a: 1 }, { a: 1, b: 'x' })
})

test('a list of fields to remove whose last one is in brackets', async () => {
  const lines = '  remove_keys a, $.b, $["c"]["d.e"]'
  await check(
    modifier(lines),
    { a: 1, b: 2, c: { 'd.e': 3, f: 4 }, g: 5 },
    { 'a == null && .b == null && .c': { f: 4 }, g: 5 },
  )
})
