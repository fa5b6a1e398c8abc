import { expect, test } from 'vitest'
import type { Gap } from '../draft.ts'
import { Report } from '../loki/context.ts'
import { isList, isMap, type Tree } from '../loki/tree.ts'
import { Evaluator, referenceOf } from './evaluate.ts'
import { parseAlloy } from './syntax.ts'

function plain(tree: Tree): unknown {
  const reference = referenceOf(tree)
  if (reference !== undefined) return { reference }
  if (isList(tree)) return tree.value.map(plain)
  return isMap(tree) ? Object.fromEntries([...tree.value].map(([name, item]) => [name, plain(item)])) : tree.value
}

function resultOf(expression: string) {
  const gaps: Gap[] = []
  const { attributes, problems } = parseAlloy(`x = ${expression}`)
  const value = attributes[0]?.value
  const evaluator = new Evaluator('f.alloy', 0, new Report(gaps))
  return { value: value === undefined ? undefined : plain(evaluator.value(value)), gaps, problems }
}

const variable = (text: string) => '$'.concat(`{${text}}`)

test.each([
  ['"a\\tb \\"q\\" \\u00e9"', 'a\tb "q" é'],
  ['`raw \\d "x"`', 'raw \\d "x"'],
  ['-3 + 2 * 4 ^ 2', 29],
  ['(1 + 2) * 3 == 9 && !false', true],
  ['1.5e3', 1500],
  ['[1, "a", [true, null],]', [1, 'a', [true, null]]],
  ['{a = 1, "b c" = {d = []},}', { a: 1, 'b c': { d: [] } }],
  ['{a = {b = 7}}.a["b"]', 7],
  ['[5, 6][1]', 6],
  ['"a" + "b"', 'ab'],
  ['[1] + [2]', [1, 2]],
  ['loki.write.default.receiver', { reference: 'loki.write.default.receiver' }],
  ['concat(discovery.a.b.targets, [{x = "1"}], [])', [{ reference: 'discovery.a.b.targets' }, { x: '1' }]],
  ['array.concat([1], [2, 3])', [1, 2, 3]],
  ['sys.env("TOKEN")', variable('TOKEN')],
  ['env("TOKEN")', variable('TOKEN')],
  ['coalesce(sys.env("URL"), "http://x")', variable('URL:-http://x')],
  ['coalesce("", null, [], "d")', 'd'],
  ['coalesce(sys.env("NODE_NAME"), constants.hostname)', variable('NODE_NAME')],
  ['string.trim_suffix(string.trim_prefix("abc", "a"), "c")', 'b'],
  ['string.format("%s-%d-%q-%%", "a", 2, "b")', 'a-2-"b"-%'],
  ['string.join(["a", "b"], "/")', 'a/b'],
  ['string.join(string.split("a,b", ","), "/")', 'a/b'],
  ['string.trim("!?a!b?", "?!")', 'a!b'],
  ['file.path_join("/srv/", "app", "../a.log")', '/srv/a.log'],
  ['string.to_upper(string.trim_space(" a "))', 'A'],
  ['string.replace("a-b-c", "-", "_")', 'a_b_c'],
  ['nonsensitive(sys.env("X"))', variable('X')],
  ['constants.hostname', variable('HOSTNAME')],
  ['remote.kubernetes.secret.loki.data["pass-word"]', variable('LOKI_PASS_WORD')],
  ['local.file.token.content', variable('TOKEN')],
])('the expression %s is evaluated', (expression, expected) => {
  const { value, gaps, problems } = resultOf(expression)
  expect(problems).toEqual([])
  expect(value).toEqual(expected)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
})

test.each([
  ['encoding.from_json("{}")'],
  ['argument.x.value'],
  ['1 + "a"'],
  ['string.format("%f", 1)'],
  // The values of variables are not known.
  ['string.to_lower(sys.env("CLUSTER"))'],
  ['string.replace(sys.env("MY_CLUSTER"), "_", "-")'],
  ['sys.env("STAGE") == "prod"'],
  ['coalesce(sys.env("ONE"), sys.env("TWO"))'],
])('the expression %s is a gap', (expression) => {
  expect(resultOf(expression).gaps).toMatchObject([{ file: 'f.alloy', line: 1, subject: 'expression' }])
})

test('blocks have names, labels, attributes, blocks and lines', () => {
  const { blocks, problems } = parseAlloy(`// a comment
loki.process "a" { /* another
  over lines */
  forward_to = [loki.write.default.receiver] // at the end
  stage.regex {
    expression = \`^(?P<a>
x)$\`
  }
  stage.cri { }
}
logging { level = "info" }`)
  expect(problems).toEqual([])
  expect(blocks.map(({ name, label, line }) => [name, label, line])).toEqual([
    ['loki.process', 'a', 2],
    ['logging', undefined, 11],
  ])
  expect(blocks[0]?.blocks.map(({ name, line }) => [name, line])).toEqual([
    ['stage.regex', 5],
    ['stage.cri', 9],
  ])
  expect(blocks[0]?.blocks[0]?.attributes[0]).toMatchObject({
    name: 'expression',
    line: 6,
    value: { value: '^(?P<a>\nx)$' },
  })
})

test('an invalid statement is a problem with its line, and later statements are read', () => {
  const { blocks, problems } = parseAlloy('a "x" {\n  b = = 1\n}\nc "y" {\n  d = 1\n}\ne {\n')
  expect(problems).toEqual([
    { line: 2, message: 'expected a value, found `=`' },
    { line: 8, message: 'expected `}`, found `the end`' },
  ])
  expect(blocks.map(({ name, label }) => [name, label])).toEqual([['c', 'y']])
})

test('an invalid token is a problem, and the text before its line is read', () => {
  const { blocks, problems } = parseAlloy('a { b = 1 }\nc { d = ; }\n')
  expect(problems).toMatchObject([{ line: 2 }])
  expect(blocks.map(({ name }) => name)).toEqual(['a'])
})

test.each([
  ['['.repeat(5000)],
  ['a { '.repeat(5000)],
  [`x = ${'-'.repeat(5000)}1`],
  [`x = a${'[0]'.repeat(5000)}`],
  [`x = 1${' + 1'.repeat(5000)}`],
  ['x = ('.repeat(300)],
])('a deeply nested text is a problem: %#', (text) => {
  expect(parseAlloy(text).problems.length).toBeGreaterThan(0)
})
