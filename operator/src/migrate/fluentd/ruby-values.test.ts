// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The values that `record_transformer` gives to fields, for events that it sees. The expected values are those of Ruby.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const filter = (lines: string) => `<source>
  @type tail
  path /srv/app.log
  tag app.log
  <parse>
    @type json
  </parse>
</source>
<filter **>
  @type record_transformer
  enable_ruby true
${lines.replace(/^(?=.)/gm, '  ')}
</filter>
<match **>
  @type stdout
</match>
`

async function check(lines: string, record: object, expected: Readonly<Record<string, unknown>>): Promise<void> {
  const text = filter(lines)
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: '2026-11-24T10:11:12.25Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
}

/** The time of the event. */
const seconds = Date.parse('2026-11-24T10:11:12Z') / 1000

test.each<[value: string, record: object, expected: unknown]>([
  // Numbers at the beginning of a text count.
  ['${record["a"].to_i}', { a: '12abc' }, 12],
  ['${record["a"].to_i}', { a: ' -7 ' }, -7],
  ['${record["a"].to_i}', { a: '3.9' }, 3],
  ['${record["a"].to_i}', { a: 3.9 }, 3],
  ['${record["a"].to_i}', { a: 'none' }, 0],
  ['${record["a"].to_i}', {}, 0],
  ['${record["a"].to_f}', { a: '1.5s' }, 1.5],
  ['${record["a"].to_f}', { a: '2e3' }, 2000],
  ['${record["a"].to_i + 1}', { a: '41 is' }, 42],
  ['${record["a"].to_i * 1000}', { a: '2' }, 2000],
  // Texts.
  ['${record["a"].to_s.upcase}', { a: 'x1' }, 'X1'],
  ['${record["a"].to_s}', {}, ''],
  ['${record["a"].strip}', { a: ' x ' }, 'x'],
  ['${record["a"].chomp}', { a: 'x\n' }, 'x'],
  ['${record["a"].to_s.gsub(/^\\s+/, "")}', { a: '  x\n  y' }, 'x\ny'],
  ['${record["a"].gsub(/(\\w+)=(\\w+)/, "\\\\2:\\\\1")}', { a: 'k=v l=w' }, 'v:k w:l'],
  ['${record["a"].sub("a", "b")}', { a: 'aa' }, 'ba'],
  ['${record["a"].gsub(/\\e\\[\\d+m/, "")}', { a: '\u001b[31mred\u001b[0m' }, 'red'],
  ['${record["a"].gsub(/\\h{4}/, "*")}', { a: 'x-12aF' }, 'x-*'],
  ['${record["a"].gsub(".", "-")}', { a: 'a.b.c' }, 'a-b-c'],
  ['${record["a"].split("/").last}', { a: 'x/y/' }, 'y'],
  ['${record["a"].split("/")[1]}', { a: '/x/y' }, 'x'],
  ['${record["a"].split(" ")[1]}', { a: ' x   y ' }, 'y'],
  ['${record["a"].split.first}', { a: ' x y' }, 'x'],
  ['${record["a"].gsub("\\e[0m", "")}', { a: '\u001b[0mx' }, 'x'],
  ['${record["a"].lstrip}', { a: ' x ' }, 'x '],
  ['x${record["a"].to_i + 1}', { a: '41' }, 'x42'],
  // Parts of texts, in characters.
  ['${record["a"].to_s[0..2]}', { a: 'äöüß' }, 'äöü'],
  ['${record["a"].to_s[0..99]}', {}, ''],
  ['${record["a"][0..2]}', { a: 'äöüß' }, 'äöü'],
  ['${record["a"][0...2]}', { a: 'äöüß' }, 'äö'],
  ['${record["a"][0, 2]}', { a: 'äöüß' }, 'äö'],
  ['${record["a"][1..2]}', { a: 'a\ncd' }, '\nc'],
  ['${record["a"][1..-1]}', { a: 'äöüß' }, 'öüß'],
  ['${record["a"][1..]}', { a: 'äöüß' }, 'öüß'],
  ['${record["a"][0..-2]}', { a: 'abc' }, 'ab'],
  ['${record["a"][0..-2]}', { a: '' }, ''],
  ['${record["a"][0...-2]}', { a: 'abc' }, 'a'],
  ['${record["a"][-2..-1]}', { a: 'abc' }, 'bc'],
  ['${record["a"][-3, 2]}', { a: 'abcd' }, 'bc'],
  ['${record["a"][-3..-1]}', { a: 'ab' }, null],
  ['${record["a"][3..5]}', { a: 'abc' }, ''],
  ['${record["a"][4..5]}', { a: 'abc' }, null],
  ['${record["a"][0]}', { a: 'xyz' }, 'x'],
  ['${record["a"][-1]}', { a: 'xyz' }, 'z'],
  ['${record["a"][3]}', { a: 'xyz' }, null],
  ['${record["a"][0]}', { a: [7, 8] }, 7],
  ['${record["a"][1..2]}', { a: [1, 2, 3, 4] }, [2, 3]],
  ['${record["a"][-2..-1]}', { a: [1, 2, 3, 4] }, [3, 4]],
  ['${record["a"].split("-")[0..1]}', { a: 'x-y-z' }, ['x', 'y']],
  ['${record["a"][/id=(\\d+)/, 1]}', { a: 'x id=42' }, '42'],
  ['${record["a"][/id=(?<n>\\d+)/, "n"]}', { a: 'x id=42' }, '42'],
  ['${record["a"][/\\d+/]}', { a: 'x id=42' }, '42'],
  ['${record["a"][/\\d+/]}', { a: 'x' }, null],
  ['${record["a"].match(/id=(\\d+)/)[1]}', { a: 'x id=42' }, '42'],
  ['${record["a"].match(/x/) ? 1 : 2}', { a: 'xy' }, 1],
  // Lengths.
  ['${record["a"].length}', { a: 'äb' }, 2],
  ['${record["a"].size}', { a: [1, 2, 3] }, 3],
  ['${record["a"].size}', { a: { b: 1 } }, 1],
  ['${record["a"].bytesize}', { a: 'äb' }, 3],
  ['${record["a"].to_s.bytesize}-', { a: 'äb' }, '3-'],
  // Members.
  ['${record["a"].include?("x") ? 1 : 2}', { a: 'axb' }, 1],
  ['${record["a"].include?("x") ? 1 : 2}', { a: ['y', 'x'] }, 1],
  ['${record["a"].include?("x") ? 1 : 2}', { a: ['xy'] }, 2],
  ['${record["a"].include?("x") ? 1 : 2}', { a: { x: 1 } }, 1],
  ['${record.fetch("a", "none")}', {}, 'none'],
  ['${record.fetch("a", "none")}', { a: 5 }, 5],
  // Choices and conditions.
  ['${record["a"] || "none"}', {}, 'none'],
  ['${record["a"] || "none"}', { a: false }, 'none'],
  ['${record["a"] || "none"}', { a: 0 }, 0],
  ['${record["a"].nil? ? "no" : "yes"}', { a: false }, 'yes'],
  ['${record["a"] == "x" && record["b"] != "y"}', { a: 'x', b: 'z' }, true],
  ['${record["a"].start_with?("x", "y") ? 1 : 2}', { a: 'yes' }, 1],
  ['${record["a"].end_with?("x", "y")}', { a: 'no' }, false],
  ['${record["a"] =~ /^err/i ? "bad" : "good"}', { a: 'Error' }, 'bad'],
  ['${record["a"] =~ /^two/ ? "bad" : "good"}', { a: 'one\ntwo' }, 'bad'],
  ['${record["a"] !~ /x/ ? 1 : 2}', { a: 'x' }, 2],
  ['${record.key?("a")}', { a: null }, true],
  ['${record.has_key?("a") ? 1 : 2}', {}, 2],
  ['${record.dig("a", "b", "c")}', { a: { b: { c: 5 } } }, 5],
  ['${record.dig("a", "b")&.upcase || "none"}', { a: {} }, 'none'],
  // Division.
  ['${record["a"] / record["b"]}', { a: 7, b: 2 }, 3],
  ['${record["a"] / record["b"]}', { a: -7, b: 2 }, -4],
  ['${record["a"] / record["b"]}', { a: 7.5, b: 2 }, 3.75],
  ['${record["a"] / 1000.0}', { a: 250 }, 0.25],
  ['${record["a"].to_i / 1000}', { a: '-1500' }, -2],
  ['${record["a"].to_f / 1000}', { a: '1500' }, 1.5],
  ['${record["a"].to_f.round}', { a: '2.5' }, 3],
  ['${record["a"].to_f.round(1)}', { a: '1.26' }, 1.3],
  ['${record["a"].to_f.floor - 1}', { a: '1.9' }, 0],
  // JSON.
  ['${record["a"].to_json}', { a: { b: [1, 'x'] } }, '{"b":[1,"x"]}'],
  // Classes, and parts that Ruby does not evaluate.
  ['${record["a"].is_a?(Array) ? record["a"].join(",") : record["a"]}', { a: ['x', 'y'] }, 'x,y'],
  ['${record["a"].is_a?(Array) ? record["a"].join(",") : record["a"]}', { a: 'z' }, 'z'],
  ['${record["a"].nil? ? nil : record["a"]["b"]}', {}, null],
  ['${record["a"].nil? ? "none" : record["a"]["b"].upcase}', { a: { b: 'x' } }, 'X'],
  ['${record["a"] && record["a"].start_with?("x") ? 1 : 2}', {}, 2],
  ['${(record["a"] || record["b"].upcase) + "!"}', { a: 'x' }, 'x!'],
  ['${record["a"]&.upcase}', {}, null],
  // Errors that the code rescues.
  ['${record["a"]["b"]["c"] rescue "none"}', {}, 'none'],
  ['${record["a"]["b"]["c"] rescue "none"}', { a: { b: { c: 5 } } }, 5],
  ['${record["a"].upcase rescue record["b"]}', { a: 7, b: 'x' }, 'x'],
  ['${(record["a"].strip rescue "").length}', {}, 0],
  ['${record["a"] > 5 rescue false}', { a: 'x' }, false],
  ['${record["a"].match(/id=(\\d+)/)[1] rescue nil}', { a: 'x' }, null],
  // A value that is one placeholder keeps its type, and other values are texts.
  ['${record["a"]}', { a: 5 }, 5],
  ['${record["a"]}${record["b"]}', { a: 5, b: true }, '5true'],
  ['x-${record["a"]}', {}, 'x-'],
  ['5', {}, '5'],
  // The tag and the time.
  ['${tag}', {}, 'app.log'],
  ['${tag_parts.last}', {}, 'log'],
  ['${tag_parts[-1]}-${tag_prefix[0]}-${tag_suffix[1]}', {}, 'log-app-log'],
  ['${time}', {}, '2026-11-24 10:11:12 +0000'],
  ['${time.iso8601}', {}, '2026-11-24T10:11:12+00:00'],
  ['${time.strftime("%Y-%m-%dT%H:%M:%S.%L%z")}', {}, '2026-11-24T10:11:12.250+0000'],
  ['${time.strftime("%S%6N")}', {}, '12250000'],
  ['${time.to_i}', {}, seconds],
  ['${time.to_f}', {}, seconds + 0.25],
  ['${(time.to_f * 1000).to_i}', {}, seconds * 1000 + 250],
  ['${time.utc.iso8601(3)}', {}, '2026-11-24T10:11:12.250Z'],
  ['${time.localtime.strftime("%F")}', {}, '2026-11-24'],
  ['${Time.at(time).utc.iso8601}', {}, '2026-11-24T10:11:12Z'],
  ['${record.to_json}', { a: 1 }, '{"a":1}'],
])('%s for %j is %j', async (value, record, expected) => {
  await check(`<record>\n  found ${value}\n</record>`, record, { found: expected })
})

test.each<[about: string, lines: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'values in JSON are objects and lists, and their texts have placeholders',
    '<record>\n  found {"a":"${record["b"]}","list":[1,"x-${tag}"],"none":{}}\n</record>'.replace(
      '${record["b"]}',
      '${record[\\"b\\"]}',
    ),
    { b: 5 },
    { found: { a: 5, list: [1, 'x-app.log'], none: {} } },
  ],
  [
    'without the cast, single placeholders are texts',
    'auto_typecast false\n<record>\n  found ${record["a"]}\n</record>',
    { a: 5 },
    { found: '5' },
  ],
  [
    'without the cast, numbers become texts',
    'auto_typecast false\n<record>\n  found ${record["a"].to_i}\n  other ${record["a"].to_f}\n</record>',
    { a: '5.5' },
    { found: '5', other: '5.5' },
  ],
  [
    'names of fields have placeholders',
    '<record>\n  is_${record["kind"]} ${record["value"]}\n</record>',
    { kind: 'web', value: 5 },
    { is_web: 5 },
  ],
  [
    'a new record has the keys that it keeps, as far as they are there',
    'renew_record true\nkeep_keys a,b\n<record>\n  c 1\n</record>',
    { a: 1, d: 2 },
    { '': { a: 1, c: '1', timestamp: true } },
  ],
  [
    'the time of the event is that of a field, which stays',
    'renew_time_key at\n<record>\n  found 1\n</record>',
    { at: 1577934245.5 },
    { at: 1577934245.5, timestamp: '2020-01-02T03:04:05.5Z' },
  ],
  [
    'the time of the event stays where the field is missing',
    'renew_time_key at\n<record>\n  found 1\n</record>',
    {},
    { timestamp: '2026-11-24T10:11:12.25Z' },
  ],
  [
    'fields that are removed are not in the way of those that read them',
    'remove_keys a,$.b.c\n<record>\n  found ${record["a"]}\n</record>',
    { a: 1, b: { c: 2, d: 3 } },
    { found: 1, b: { d: 3 } },
  ],
])('%s', async (_, lines, record, expected) => {
  const { '': whole, ...others } = expected as Readonly<Record<string, Readonly<Record<string, unknown>>>>
  if (whole === undefined) {
    await check(lines, record, others)
    return
  }
  const { document, resource } = converted(convertFluentd, [{ file: 'fluent.conf', text: filter(lines) }])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: '2026-11-24T10:11:12Z' }, {})
  const keys = Object.keys(whole).map((key) => JSON.stringify(key))
  const text = document.toString({ lineWidth: 0 })
  expect(text).toContain('assert: ""')
  expect(await lint(text.replace('assert: ""', `assert: keys(.) == [${keys.sort().join(', ')}]`))).toEqual([])
})

test.each([
  '${record["a"].frobnicate}',
  '${record["a"] =~ /x/}',
  '${eval("1")}',
  '${Time.new.to_i}',
  '${record["a"].start_with?(record["b"])}',
  '${record["a"][0..record["b"]]}',
  '${record["a"][0..2000].upcase + record["a"][1..2000]}',
  '${record["a"].match(/x/)}',
  '${time.wday}',
  '${record["a"][record["b"].to_s]}',
  '${"%05d" % record["a"]}',
])('%s is a gap, and its text is in the comment', (value) => {
  const text = filter(`<record>\n  found ${value}\n</record>`)
  const { document, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'record_transformer: found', line: 13 }])
  expect(document.toString({ lineWidth: 0 })).toContain(`found ${value}`)
})

test.each([
  ['${record["a"].upcase}', {}],
  ['${record["a"].upcase}', { a: 5 }],
  ['${record["a"]["b"]}', {}],
  ['${record["a"][0..2]}', {}],
  ['${record["a"].include?("x") ? 1 : 2}', {}],
  ['${record["a"].match(/id=(\\d+)/)[1]}', { a: 'x' }],
  ['${record["a"] > 5 ? 1 : 2}', { a: 'x' }],
  ['${record["a"] + 1}', {}],
  ['x-${record["a"].strip}', {}],
  ['${record.fetch("a")}', {}],
])('%s raises an error for %j, so the event is discarded', async (value, record) => {
  const { document, resource, gaps } = converted(convertFluentd, [
    { file: 'fluent.conf', text: filter(`<record>\n  found ${value}\n</record>`) },
  ])
  expect(gaps).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: '2026-11-24T10:11:12.25Z' }, undefined)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
