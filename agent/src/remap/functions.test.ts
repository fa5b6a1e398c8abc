import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { isFailure } from './function.ts'
import { findFunction, functions } from './functions.ts'
import { compileProgram } from './program.ts'
import { valueText } from './text.ts'

/** Files that examples name, by their paths here. */
const files: readonly (readonly [string, string])[] = [
  ['"order.desc"', JSON.stringify(fileURLToPath(new URL('testdata/order.desc', import.meta.url)))],
]

/** The text of a program's result. */
function run(example: string): string {
  const source = files.reduce((text, [name, path]) => text.replaceAll(name, path), example)
  const compiled = compileProgram(source, { keepResult: true, network: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  const result = compiled.program.run({}, noMetadata, true)
  return isFailure(result) ? `fails: ${result.message}` : valueText(result)
}

const examples = functions.flatMap(({ name, examples }) => examples.map((example) => ({ name, ...example })))

// The large data set of user agents takes a while to load, especially while other tests run.
test.each(examples)('$name: $source', ({ source, result }) => {
  expect(run(source)).toBe(result)
})

test('every function has three examples, a summary that is a sentence, and its own name', () => {
  for (const declaration of functions) {
    expect(declaration.examples.length, declaration.name).toBeGreaterThanOrEqual(3)
    expect(declaration.summary, declaration.name).toMatch(/^[A-Z].*\.$/)
    expect(findFunction(declaration.name)).toBe(declaration)
    for (const parameter of declaration.parameters) expect(parameter.description).toMatch(/^.*[.…]$/)
  }
})

test.each([
  // Bytes that are not UTF-8 stay bytes if a function accepts them.
  ['length(decode_base16!("ff00"))', '2'],
  ['encode_base16(slice!("é漢", 2, 3))', '"e6"'],
  ['chunks("é", 1) == [decode_base16!("c3"), decode_base16!("a9")]', 'true'],
  ['.b = decode_base16!("ff6162")\nstrlen!(.b)', '3'],
  // Integers beyond 2^53 are exact.
  ['parse_int!("9223372036854775807")', '9223372036854775807'],
  ['to_int!("-9223372036854775808")', '-9223372036854775808'],
  ['abs(-9223372036854775807 - 1)', '-9223372036854775808'],
  // Fields with any name.
  ['merge({"__proto__": 1}, {"constructor": 2})', '{ "__proto__": 1, "constructor": 2 }'],
  ['keys({"__proto__": 1})', '["__proto__"]'],
  ['flatten({"__proto__": {"a": 1}})', '{ "__proto__.a": 1 }'],
  ['parse_regex!("a", r\'(?P<__proto__>a)\')', '{ "__proto__": "a" }'],
  // The first part of a path decides what `set` makes. After a computed one, the program tests kinds that the compiler assumes.
  ['set!([], [], 1)', '1'],
  ['set!({"a": 1}, [0], 2)', '[2]'],
  ['o = set!([1], ["a"], 2)\nkeys(o)', '["a"]'],
  ['.p = ["a"]\nset!({}, array!(.p), 2)', '{ "a": 2 }'],
  ['.p = []\nset({}, array!(.p), {"b": 1}) ?? 0', '{ "b": 1 }'],
  ['.p = []\nset!({}, array!(.p), 2)', '2'],
  ['.p = [0]\nx = set!({"a": 1}, array!(.p), 2)\nx', '[2]'],
  [
    '.p = [0]\nx = set!({"a": 1}, array!(.p), 2)\nkeys(x)',
    'fails: function call error for "keys" at (43:50): expected object, got [integer]',
  ],
  // Kinds that the language defines, although values may be of others.
  [
    '.f = parse_json!("7.5")\ny = mod(.f, 2) ?? 0\nformat_int!(y)',
    'fails: function call error for "format_int" at (44:58): expected integer, got float',
  ],
  [
    '.p = "[[1], 2]"\nkeys(flatten!(parse_json!(.p)))',
    'fails: function call error for "keys" at (16:47): expected object, got [integer, integer]',
  ],
  ['upcase(pop(["a", "b"])[0])', '"A"'],
  // Problems of the reference's own words.
  [
    'tally!([["a", 1, [true, null]]])',
    'fails: function call error for "tally" at (0:32): all values must be strings, found: Array([Bytes(b"a"), Integer(1), Array([Boolean(true), Null])])',
  ],
  [
    'random_bytes!(int!(length([]) - 1))',
    'fails: function call error for "random_bytes" at (0:35): Length cannot be negative',
  ],
  [
    'random_bytes!(int!(length([]) + 65537))',
    'fails: function call error for "random_bytes" at (0:39): Length is too large. Maximum is 64k',
  ],
  [
    'random_int!(length([1]), length([]))',
    'fails: function call error for "random_int" at (0:36): max must be greater than min',
  ],
  ['upcase(pop([1, "b"])[1])', 'fails: function call error for "upcase" at (0:24): expected string, got null'],
  ['slice!([1, "a"], 1)[0] + 1', "fails: can't add type integer to string"],
  ['x = map_keys({"a": 1}) -> |key| { upcase(key) }\n[x.A, format_int(x.a) ?? "none"]', '[1, "none"]'],
  [
    'upcase(parse_regex!("b", r\'(?P<a>x)?b\').a)',
    'fails: function call error for "upcase" at (0:42): expected string, got null',
  ],
  [
    'map_values(parse_tokens("a -")) -> |token| { upcase(token) }',
    'fails: function call error for "map_values" at (0:60): function call error for "upcase" at (45:58): expected string, got null',
  ],
  ['to_int(xxhash("penstock")) ?? 0', '2081285011'],
  // Fields that the language does not declare.
  [
    's = parse_syslog!(s\'<13>1 2024-01-01T00:00:00Z h a 1 - [id@1 n="5"] m\')\n[to_int(s."id@1".n), is_object(s."id@1"), exists(s."id@1".x)]',
    '[5, true, false]',
  ],
  [
    'e = parse_apache_log!("[01/Mar/2021:12:00:19 +0000] [ab:alert] [pid 48] [client 1.2.3.4:24] text", "error")\n[to_int(e.pid), to_string(e.port), to_string(e.client)]',
    '[48, "24", "1.2.3.4"]',
  ],
  ['r, err = xxhash(.s)\nr', '""'],
  ['xxhash("penstock", variant: "xxh64")', '-6781507496950606221'],
  // A zlib stream may be cut off or followed by other data; a gzip file must not.
  ['decode_zlib!("")', '""'],
  ['decode_zlib!(slice!(encode_zlib("gate seven"), 0, -4))', '"gate seven"'],
  ['decode_zlib!(encode_zlib("gate") + "x")', '"gate"'],
  ['decode_zlib("xx") ?? "no zlib"', '"no zlib"'],
  ['decode_gzip(slice!(encode_gzip("gate"), 0, -4)) ?? "cut off"', '"cut off"'],
  ['decode_gzip(encode_gzip("gate") + "x") ?? "more"', '"more"'],
  ['decode_gzip!(encode_gzip("gate ") + encode_gzip("seven"))', '"gate seven"'],
  ['encode_base16(slice!(encode_gzip("gate"), 0, 10))', '"1f8b08000000000000ff"'],
  [
    'map_values([0, 1, 3, 4, 8, 9, 10]) -> |level| { encode_base16(slice!(encode_zlib!("gate", level), 0, 2)) }',
    '["7801", "7801", "785e", "789c", "789c", "78da", "78da"]',
  ],
  ['encode_base16(encode_zstd(""))', '"28b52ffd2000010000"'],
  ['encode_base16(encode_zstd("gate"))', '"28b52ffd005821000067617465"'],
  ['encode_base16(encode_zstd("gate", compression_level: 0))', '"28b52ffd005821000067617465"'],
  ['encode_base16(encode_zstd("gate", compression_level: 23))', '"28b52ffd008821000067617465"'],
  ['encode_base16(encode_zstd("gate", compression_level: -9))', '"28b52ffd004821000067617465"'],
  ['decode_zstd!(encode_zstd("gate seven", compression_level: 4294967296))', '"gate seven"'],
  // Compression levels.
  ['decode_gzip!(encode_gzip("gate", compression_level: 10))', '"gate"'],
  ['encode_gzip("gate", compression_level: 11) ?? "too high"', '"too high"'],
  ['.level = 0\ndecode_zlib!(encode_zlib!("gate", compression_level: int!(.level)))', '"gate"'],
  [
    'encode_zlib("gate", compression_level: -1)',
    'fails: function call error for "encode_zlib" at (0:42): compression level must be <= 10',
  ],
  // Encoded words of headers.
  ['decode_mime_q("=?utf-8?b?YR==?=") ?? "unused bits"', '"unused bits"'],
  ['decode_mime_q!("=?utf-8?q?g=C3=A4te=20seven=zz=2_?=")', '"gäte seven=zz=2 "'],
  ['decode_mime_q!("=?utf-8?q?one =\ntwo \nthree=?=")', '"one two\r\\nthree"'],
  ['decode_mime_q!("=?utf-8?q?caf\u{e9}=21?=")', '"caf!"'],
  [
    'decode_mime_q!("=?utf-8?X?a?=")',
    'fails: function call error for "decode_mime_q" at (0:31): Invalid encoding: "X"',
  ],
  // The ports of one address are ordered by their low bytes.
  ['community_id!("10.0.0.1", "10.0.0.1", 6, 1, 256)', '"1:DUkRcZzbksGuE8pA3aiaG3ISjSM="'],
  [
    '.p = 300\ncommunity_id!("10.0.0.1", "10.0.0.2", int!(.p))',
    'fails: function call error for "community_id" at (9:56): protocol must be between 0 and 255: out of range integral type conversion attempted',
  ],
  // Address blocks.
  ['ip_subnet!("192.0.2.77", "/0")', '"192.0.2.77"'],
  [
    '.c = "192.0.2.0/33"\nip_cidr_contains!(.c, "192.0.2.1")',
    'fails: function call error for "ip_cidr_contains" at (20:54): unable to parse CIDR: invalid length for network: Network length 33 is too long for Ipv4 (maximum: 32)',
  ],
  // Values of other kinds, with the function's own words; the address is looked at first.
  [
    'ip_cidr_contains!(.c, "192.0.2.x")',
    'fails: function call error for "ip_cidr_contains" at (0:34): unable to parse IP address: invalid IP address syntax',
  ],
  [
    'ip_cidr_contains!(.c, "192.0.2.1")',
    'fails: function call error for "ip_cidr_contains" at (0:34): expected string or array, got null',
  ],
  [
    '.t = get!({"t": "5"}, ["t"])\nfrom_unix_timestamp!(.t)',
    'fails: function call error for "from_unix_timestamp" at (29:53): unable to coerce string into timestamp',
  ],
  // Texts that may be missing although programs rely on them.
  [
    'upcase(parse_url!("mailto:a@b").host)',
    'fails: function call error for "upcase" at (0:37): expected string, got null',
  ],
  [
    'upcase(parse_nginx_log!(s\'- - - [01/Apr/2021:12:02:31 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\', "combined").client)',
    'fails: function call error for "upcase" at (0:113): expected string, got null',
  ],
  // Items of any kind, so programs may handle failures that cannot occur.
  ['x = to_entries({"a": 1})\nto_string(x[0].key) ?? ""', '"a"'],
  ['x = split_path("/a")\nto_string(x[1]) ?? ""', '"a"'],
  ['.p = "{}"\nx = tag_types_externally(parse_json!(.p))\nkeys(x)', '[]'],
  [
    '.p = "[]"\nkeys(tag_types_externally(parse_json!(.p)))',
    'fails: function call error for "keys" at (10:53): expected object, got array',
  ],
  ['x = unique(["a", "a"])\nto_string(x[0]) ?? ""', '"a"'],
  ['upcase(parse_cef!("CEF:0|v|p|1|id|n|5|").name)', '"N"'],
  [
    'upcase(parse_cef!("CEF:0|v|p|1|id|n|5|cs1Label=name", translate_custom_fields: true).name)',
    'fails: function call error for "upcase" at (0:90): expected string, got null',
  ],
  ['length(parse_xml!("<a>12</a>"))', '1'],
  ['keys(parse_xml!("<a>12</a>").a) ?? "no object"', '"no object"'],
  ['for_each(object!(parse_xml!("<a><b>1</b></a>"))) -> |_k, v| { .keys = keys(v) }\n.keys', '["b"]'],
  ['parse_yaml(decode_base16!("61ff")) ?? "no text"', '"no text"'],
  [
    'parse_json!("{}", max_depth: 300)',
    'fails: function call error for "parse_json" at (0:33): out of range integral type conversion attempted',
  ],
  [
    'parse_json!("\\u{feff}{}", max_depth: 2)',
    'fails: function call error for "parse_json" at (0:39): unable to read json: expected value at line 1 column 1',
  ],
  [
    'parse_json!(decode_base16!("22ff22"), lossy: false)',
    'fails: function call error for "parse_json" at (0:51): unable to parse json: invalid unicode code point at line 1 column 3',
  ],
  [
    'parse_aws_cloudwatch_log_subscription_message(s\'{"messageType": "DATA_MESSAGE", "owner": "1", "logGroup": "g", "logStream": "s", "subscriptionFilters": [], "logEvents": [], "more": 1}\') ?? "unknown field"',
    '"unknown field"',
  ],
  // Texts of numbers that cannot be read.
  ['r, err = parse_int("")\nerr', '"function call error for \\"parse_int\\" at (9:22): value is empty"'],
  [
    'parse_int!("", base: 10)',
    'fails: function call error for "parse_int" at (0:24): could not parse integer: cannot parse integer from empty string',
  ],
  [
    'parse_int!("1x")',
    'fails: function call error for "parse_int" at (0:16): could not parse integer: invalid digit found in string',
  ],
  [
    'parse_int!("9223372036854775808")',
    'fails: function call error for "parse_int" at (0:33): could not parse integer: number too large to fit in target type',
  ],
  [
    'parse_int!("-9223372036854775809")',
    'fails: function call error for "parse_int" at (0:34): could not parse integer: number too small to fit in target type',
  ],
  ['parse_int!("-9223372036854775808")', '-9223372036854775808'],
  [
    'parse_float!("")',
    'fails: function call error for "parse_float" at (0:16): could not parse float: cannot parse float from empty string',
  ],
  [
    'parse_float!("x")',
    'fails: function call error for "parse_float" at (0:17): could not parse float: invalid float literal',
  ],
  ['parse_float!("nan")', 'fails: function call error for "parse_float" at (0:19): NaN number not supported'],
  ['to_float!("-NaN")', 'fails: function call error for "to_float" at (0:17): NaN number not supported "-NaN"'],
  [
    'parse_apache_log!("- - - [1234] - - - - - ", "combined")',
    'fails: function call error for "parse_apache_log" at (0:56): failed parsing timestamp 1234 using format %d/%b/%Y:%T %z: the text does not match or names no valid time',
  ],
  // A constant text makes a constant float, so the compiler sees where the result is not a number.
  ['(parse_float!("inf") - parse_float!("inf")) ?? 0', '0'],
  ['(parse_float!("inf") * 0) ?? 0', '0'],
  ['mod(parse_float!("inf"), 1.0) ?? 0', '0'],
  ['10 / parse_float!("4")', '2.5'],
  // `remove` returns other values as they are, and the compiler knows.
  ['is_null(remove!(.f, ["a"]))', 'true'],
  ['x = remove!(.f, [])\nstring(x) ?? "none"', '"none"'],
  // Removed fields are absent.
  ['. = {"a": 1, "b": 2}\ndel(.a)\n[length(.), keys(.), merge({"a": 3}, .)]', '[1, ["b"], { "a": 3, "b": 2 }]'],
  // Empty matches.
  ['replace("abc", r\'x*\', "-")', '"-a-b-c-"'],
  ['split("a1b", r\'[0-9]*\')', '["", "a", "b", ""]'],
  ['replace("😀", r\'\', "-")', '"-😀-"'],
  // Closures end by failure, abort and return.
  ['x, err = map_values(["1", "z"]) -> |v| { to_int(v) }\nerr != null', 'true'],
  ['n = 0\nfor_each({"a": 1, "b": 2}) -> |_k, v| { if v == 1 { return null }\nn = n + v }\nn', '2'],
  ['filter({"a": 1, "b": 2}) -> |_k, v| { return v == 2 }', '{ "b": 2 }'],
])('%s', (source, result) => {
  expect(run(source)).toBe(result)
})

test('an event that becomes a constant object does not change the constant', () => {
  const compiled = compileProgram('. = merge({"a": 1}, {"b": 2})\n.n = (int(.n) ?? 0) + 1\n.', { keepResult: true })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  for (let round = 0; round < 2; round++) {
    const result = compiled.program.run({}, noMetadata, true)
    expect(isFailure(result) ? result.message : valueText(result)).toBe('{ "a": 1, "b": 2, "n": 1 }')
  }
})

test.each([
  'names = ["a"]\nflatten({"a": {"b": 1}}, except: names)',
  'limits = ["acronym"]\nsnakecase("aB", excluded_boundaries: limits)',
  'patterns = [r\'a\']\nmatch_any("a", patterns)',
  'filters = [r\'a\']\nredact("a", filters)',
])('an array that the compiler reads is written in the call: %s', (source) => {
  expect(compileProgram(source)).toMatchObject({ ok: false, diagnostics: [{ code: 610 }] })
})
