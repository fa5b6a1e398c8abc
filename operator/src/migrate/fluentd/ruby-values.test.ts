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
  ['${record["a"].downcase.to_sym}', { a: 'X' }, 'x'],
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
  // Numbers with decimals: Ruby rounds the exact binary number, and ties to even digits.
  ['${format("%.2f", record["a"].to_f)}', { a: '3.256' }, '3.26'],
  ['${"%.2f" % record["a"]}', { a: 1.345 }, '1.34'],
  ['${"%.2f" % record["a"]}', { a: 1.115 }, '1.11'],
  ['${"%.2f" % record["a"]}', { a: 0.125 }, '0.12'],
  ['${"%.2f" % record["a"]}', { a: 0.375 }, '0.38'],
  ['${"%.2f" % record["a"]}', { a: -0.001 }, '-0.00'],
  ['${"%.2f" % record["a"]}', { a: 7 }, '7.00'],
  ['${"%.1f" % record["a"]}', { a: 0.05 }, '0.1'],
  ['${"%.0f" % record["a"]}', { a: 2.5 }, '2'],
  ['${"%f" % record["a"]}', { a: 1234.5 }, '1234.500000'],
  ['${"%07.2f|%+d|%-4s|%.2s" % [record["a"], 5, "x", "abc"]}', { a: -3.256 }, '-003.26|+5|x   |ab'],
  ["${'%.3f' % (record['a'].to_f / 1000)}", { a: '12345' }, '12.345'],
  // Times.
  ['${Time.parse(record["a"]).to_i}', { a: '2026-11-24T10:11:12Z' }, 1795515072],
  ['${Time.parse(record["a"]).to_i}', { a: '2026-11-24 12:11:12 +0200' }, 1795515072],
  ['${Time.parse(record["a"]).utc.iso8601(3)}', { a: '2026-11-24T12:11:12.5+02:00' }, '2026-11-24T10:11:12.500Z'],
  ['${Time.parse(record["a"]).iso8601}', { a: '2026-11-24T12:11:12+02:00' }, '2026-11-24T12:11:12+02:00'],
  ['${Time.parse(record["a"]).iso8601}', { a: '2026-11-24T10:11:12Z' }, '2026-11-24T10:11:12Z'],
  ['${Time.parse(record["a"]).iso8601}', { a: '2026-11-24 10:11:12' }, '2026-11-24T10:11:12+00:00'],
  ['${Time.parse(record["a"]).strftime("%d.%m. %H h %z")}', { a: '2026-11-24T23:11:12-0330' }, '24.11. 23 h -0330'],
  ['${Time.parse(record["a"]).to_i rescue 0}', { a: 'never' }, 0],
  [
    '${Time.parse(record["a"]) - Time.parse(record["b"])}',
    { a: '2026-11-24T10:11:12.5Z', b: '2026-11-24T10:11:10Z' },
    2.5,
  ],
  ['${DateTime.parse(record["a"]).rfc3339(3)}', { a: '2026-11-24T10:11:12Z' }, '2026-11-24T10:11:12.000+00:00'],
  ['${Time.strptime(record["a"], "%d/%m/%Y").strftime("%Y-%m-%d")}', { a: '24/11/2026' }, '2026-11-24'],
  ['${Time.at(record["a"].to_i).utc.strftime("%Y/%m/%d")}', { a: '1795515072' }, '2026/11/24'],
  ['${Time.at(record["a"].to_f / 1000).utc.iso8601(3)}', { a: '1795515072250' }, '2026-11-24T10:11:12.250Z'],
  ['${Time.at(0, record["a"], :millisecond).utc.iso8601(3)}', { a: 1795515072250 }, '2026-11-24T10:11:12.250Z'],
  ['${Time.at(record["a"]).iso8601}', { a: 1795515072 }, '2026-11-24T10:11:12+00:00'],
  ['${Time.at(time.to_r).utc.iso8601(3)}', {}, '2026-11-24T10:11:12.250Z'],
  ['${time.localtime("+09:00").strftime("%Y-%m-%d %H:%M %z")}', {}, '2026-11-24 19:11 +0900'],
  ['${Time.parse(record["a"]).hour + 1}', { a: '2026-11-24T08:11:12Z' }, 9],
  // Blocks.
  ['${record["a"].map { |key, value| "#{key}=#{value}" }.join(",")}', { a: { b: 1, c: 'x' } }, 'b=1,c=x'],
  ['${record["a"].map { |each| each.upcase }.join(",")}', { a: ['x', 'y'] }, 'X,Y'],
  ['${record["a"].map(&:to_s)}', { a: [1, 'y'] }, ['1', 'y']],
  ['${record["a"].select { |each| each.start_with?("x") }}', { a: ['x1', 'y', 'x2'] }, ['x1', 'x2']],
  ['${record["a"].reject { |key, _| key == "b" }}', { a: { b: 1, c: 2 } }, { c: 2 }],
  ['${record["a"].map { |key, value| [key.gsub(".", "_"), value] }.to_h}', { a: { 'b.c': 1 } }, { b_c: 1 }],
  ['${record["a"].transform_keys { |key| key.downcase }}', { a: { B: 1 } }, { b: 1 }],
  ['${record["a"].transform_values(&:to_s)}', { a: { b: 1 } }, { b: '1' }],
  [
    '${record["a"].each_with_object({}) { |(key, value), all| all[key.tr(".", "_")] = value }}',
    { a: { 'b.c': 1 } },
    { b_c: 1 },
  ],
  ['${record["a"].inject(0) { |all, each| all + each.to_i }}', { a: ['1', '2'] }, 3],
  ['${record["a"].any? { |each| each =~ /^x/ } ? 1 : 2}', { a: ['y', 'x'] }, 1],
  ['${record["a"].all? { |each| each.length > 1 }}', { a: ['yy', 'x'] }, false],
  ['${record["a"].find { |each| each.start_with?("env:") }}', { a: ['x:1', 'env:live'] }, 'env:live'],
  ['${record["a"].count { |each| each == "x" }}', { a: ['x', 'y', 'x'] }, 2],
  ['${record["a"].each_with_index.map { |each, index| "#{index}:#{each}" }.join(" ")}', { a: ['x', 'y'] }, '0:x 1:y'],
  ['${record["a"].sort.join(",")}', { a: ['b', 'c', 'a'] }, 'a,b,c'],
  ['${record["a"].sort.map { |key, value| "#{key}:#{value}" }.join(" ")}', { a: { y: 1, x: 2 } }, 'x:2 y:1'],
  ['${record["a"].max}', { a: [1, 5, 3] }, 5],
  ['${record["a"].sum}', { a: [1, 5, 3] }, 9],
  ['${[record["a"].to_i, 1].max}', { a: '0' }, 1],
  ['${record["a"].upcase.then { |all| all == "WARNING" ? "WARN" : all }}', { a: 'warning' }, 'WARN'],
  ['${(record["a"] || {}).map { |key, value| key }.join}', {}, ''],
  ['${%w(emerg alert crit)[record["a"].to_i]}', { a: '2' }, 'crit'],
  ['${["debug", "info"].index(record["a"])}', { a: 'info' }, 1],
  ['${record["a"].split(".").map { |part| part[0] }.join(".")}', { a: 'org.shop.Cart' }, 'o.s.C'],
  ['${record["a"].lines.count}', { a: 'x\ny\n' }, 2],
  ['${record["a"].lines.first.strip}', { a: ' x \ny' }, 'x'],
  [
    '${record["o"].each { |key, _| record["o"].delete(key) if key.start_with?("x") }; record["o"]}',
    { o: { x1: 1, y: 2 } },
    { y: 2 },
  ],
  // A quote in a regular expression begins no text.
  ['${record["a"].to_s[/id[=:"]+(\\d{2})/, 1]}', { a: 'id="17"' }, '17'],
  // Matches.
  ['${record["a"].match(/ERROR|WARN/) ? $& : "none"}', { a: 'x WARN y' }, 'WARN'],
  ['${record["a"].match(/id=(?<id>\\d+)/)[:id]}', { a: 'id=7' }, '7'],
  ['${record["a"].match(/id=(\\d+)/)&.[](1)}', { a: 'none' }, null],
  ['${record["a"].match(/(\\w)-(\\w)/).captures.join("+")}', { a: 'x-y' }, 'x+y'],
  ['${record["a"].scan(/\\d+/).join(",")}', { a: 'x1y23' }, '1,23'],
  ['${record["a"].scan(/(\\d+)(ms)/).first.first}', { a: 'in 12ms or 7ms' }, '12'],
  ['${record["a"].scan(/(\\d+)ms/).flatten.first rescue nil}', {}, null],
  ['${if /(?<level>[A-Z]{2,})/ =~ record["a"] then level else "x" end}', { a: 'an INFO' }, 'INFO'],
  ['${(200..299).include?(record["a"].to_i) ? "ok" : "bad"}', { a: '204' }, 'ok'],
  [
    '${case record["a"].to_i when 200..299 then "ok" when 400...500 then "client" else "other" end}',
    { a: 500 },
    'other',
  ],
  // Texts.
  ['${record["a"].tr("A-Z", "a-z")}', { a: 'AbC' }, 'abc'],
  ['${record["a"].tr("^a-z", "_")}', { a: 'a-b.c' }, 'a_b_c'],
  ['${record["a"].tr("ab", "ba")}', { a: 'aabb' }, 'bbaa'],
  ['${require "json"; JSON.parse(record["a"])["b"]}', { a: '{"b":1}' }, 1],
  ['${record.values_at("a", "b").join("-")}', { a: 'x', b: 1 }, 'x-1'],
  ['${record["a"].to_h.fetch("b", "none")}', {}, 'none'],
  ['${record["a"].to_i.fdiv(100)}', { a: '250' }, 2.5],
  // Members that the code sets, in objects within the record.
  ['${record["o"]["b"] = record["o"]["b"].split(".")[-1]; record["o"]}', { o: { b: 'x.y' } }, { b: 'y' }],
  // Texts whose kind is known only from the statements before them.
  ['${record["a"].to_s.split("-")[0..-3].join("-")}', { a: 'shop-api-5d4f-x2' }, 'shop-api'],
  ['${(record["a"] || "").split(",").first.to_s.strip}', { a: ' 10.0.0.1, 10.0.0.2' }, '10.0.0.1'],
  ['${tag_prefix[0]}/${tag_suffix[1]}', {}, 'app/log'],
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
  // The value of a condition is one of its operands.
  ['${record["a"] && record["b"]}', { a: 1, b: 'x' }, 'x'],
  ['${record["a"] && record["b"]}', { b: 'x' }, null],
  ['${record["a"] && record["a"]["b"] || "none"}', { a: {} }, 'none'],
  ['${record["a"] == 1 || record["b"]}', { a: 2, b: 'x' }, 'x'],
  ['${not record["a"]}', {}, true],
  ['${record["a"] and record["b"] or "none"}', { a: 1 }, 'none'],
  // Conditional statements.
  ['${if record["a"] then record["a"] else "none" end}', {}, 'none'],
  ['${if record["a"] == "x" then 1 elsif record["a"] == "y" then 2 else 3 end}', { a: 'y' }, 2],
  ['${if record["a"] == "x" then 1 end}', { a: 'y' }, null],
  ['${if record["a"]; record["a"].include?("E") ? "bad" : "good"; else; ""; end}', { a: 'E1' }, 'bad'],
  ['${unless record["a"].nil? then record["a"] else "none" end}', { a: 5 }, 5],
  ['${record["a"] if record["b"] == "x"}', { a: 1, b: 'x' }, 1],
  ['${record["a"] unless record["b"] == "x"}', { a: 1, b: 'x' }, null],
  ['${case record["a"] when "x", "y" then 1 when /^e/ then 2 when nil then 3 else 4 end}', { a: 'err' }, 2],
  ['${case record["a"] when "x", "y" then 1 when /^e/ then 2 when nil then 3 else 4 end}', {}, 3],
  ['${case record["a"] when Integer then "n" when String then "s" end}', { a: 5 }, 'n'],
  ['${case when record["a"] > 5 then "many" else "few" end}', { a: 6 }, 'many'],
  // Variables.
  ['${x = record["a"].to_s; x = x + "!" if x != ""; x}', { a: 'b' }, 'b!'],
  ['${k = record["a"]; k["b"]["c"]}', { a: { b: { c: 5 } } }, 5],
  ['${if record["a"] then x = 1 end; x}', {}, null],
  // Texts with Ruby in them.
  ['${"#{record["a"]}-#{record["b"].to_i + 1}"}', { a: 'x', b: '1' }, 'x-2'],
  ['${"<#{record["a"]}>"}', {}, '<>'],
  // Lists and objects in code.
  ['${["x", "y"].include?(record["a"]) ? 1 : 2}', { a: 'y' }, 1],
  ['${%w[x y].include?(record["a"])}', { a: 'z' }, false],
  ['${[record["a"], record["b"]].compact.join("/")}', { b: 'x' }, 'x'],
  ['${{10 => "trace", 20 => "debug"}[record["a"]] || "info"}', { a: 20 }, 'debug'],
  ['${{"a" => 1, "b" => 2}.fetch(record["a"], 3)}', { a: 'c' }, 3],
  ['${record["a"].between?(200, 299) ? "ok" : "bad"}', { a: 204 }, 'ok'],
  ['${record["a"].zero?}', { a: 0 }, true],
  ['${record["a"].positive?}', { a: -1.5 }, false],
  ['${record["a"].take(2).join(",")}', { a: [1, 2, 3] }, '1,2'],
  ['${record["a"].drop(1)}', { a: [1, 2, 3] }, [2, 3]],
  ['${record["a"].except("b", "c")}', { a: { b: 1, d: 2 } }, { d: 2 }],
  ['${File.dirname(record["a"])}', { a: '/x/y.log' }, '/x'],
  ['${record["a"][record["b"].to_s]}', { a: { x: 5 }, b: 'x' }, 5],
  // JSON.
  ['${JSON.parse(record["a"])["b"]}', { a: '{"b":[1]}' }, [1]],
  ['${JSON.parse(record["a"]) rescue record["a"]}', { a: 'x' }, 'x'],
  ['${begin; JSON.parse(record["a"])["b"]["c"]; rescue; "none"; end}', { a: '{}' }, 'none'],
  ['${begin JSON.parse(record["a"]); rescue StandardError => e; nil; end}', { a: '{"b":1}' }, { b: 1 }],
  // The rest of a division has the sign of the divisor.
  ['${record["a"].to_i % 60}', { a: '125' }, 5],
  ['${record["a"].to_i % 3}', { a: '-7' }, 2],
  ['${record["a"] % 3}', { a: -7 }, 2],
  ['${"%03d|%-3s|%%" % [record["a"].to_i, record["b"]]}', { a: '-5', b: 'x' }, '-05|x  |%'],
  ['${"%s" % record["a"]}', { a: 5 }, '5'],
  // Groups of the last match.
  ['${record["a"] =~ /id=(\\d+)/ ? $1 : "none"}', { a: 'x id=42' }, '42'],
  ['${record["a"] =~ /id=(\\d+)/ ? $1 : "none"}', { a: 'x' }, 'none'],
  ['${record["a"].match(/id=(?<id>\\d+)/) && $~["id"]}', { a: 'id=42' }, '42'],
  ['${/id=(\\d+)/.match(record["a"])[1]}', { a: 'id=42' }, '42'],
  ['${/^x/.match?(record["a"])}', { a: 'xy' }, true],
  // Further methods of texts.
  ['${record["a"].capitalize}', { a: 'äBC' }, 'Äbc'],
  ['${record["a"].tr("-.", "_")}', { a: 'a-b.c' }, 'a_b_c'],
  ['${record["a"].tr("ab", "xy")}', { a: 'abc' }, 'xyc'],
  ['${record["a"].delete_prefix("ip-")}', { a: 'ip-ip-1' }, 'ip-1'],
  ['${record["a"].delete_suffix(".log")}', { a: 'a.log' }, 'a'],
  ['${record["a"].to_s.rjust(5, "0")}', { a: 42 }, '00042'],
  ['${record["a"].partition(":").last}', { a: 'x:y:z' }, 'y:z'],
  ['${record["a"].rpartition(":")[0]}', { a: 'x:y:z' }, 'x:y'],
  ['${record["a"].split(".", 2)[1]}', { a: 'x.y.z' }, 'y.z'],
  ['${record["a"].split(/[,;]\\s*/)}', { a: 'x, y;z;' }, ['x', 'y', 'z']],
  ['${record["a"].split(".").first(2).join("-")}', { a: 'x.y.z' }, 'x-y'],
  ['${record["a"].to_s.hex}', { a: '0x1F' }, 31],
  ['${record["a"].gsub(/[ab]/, "a" => "1", "b" => "2")}', { a: 'abc' }, '12c'],
  ['${record["a"].chop}', { a: 'xy' }, 'x'],
  ['${record["a"].squeeze(" ")}', { a: 'x   y' }, 'x y'],
  ['${record["a"].encode("UTF-8", invalid: :replace, undef: :replace, replace: "?")}', { a: 'x' }, 'x'],
  ['${record["a"].start_with?(/e\\d/)}', { a: 'e5' }, true],
  ['${record["a"].slice(0, 2)}', { a: 'abc' }, 'ab'],
  ['${record["a"].to_s.empty? ? "none" : record["a"]}', {}, 'none'],
  ['${Integer(record["a"]) rescue 0}', { a: '12x' }, 0],
  ['${record["a"].keys}', { a: { y: 1, x: 2 } }, ['x', 'y']],
  ['${Digest::MD5.hexdigest(record["a"])}', { a: 'x' }, '9dd4e461268c8034f5c8564e155c67a6'],
  ['${ENV["PENSTOCK_NO_SUCH_VARIABLE"]}', {}, ''],
  ['${ENV.fetch("PENSTOCK_NO_SUCH_VARIABLE", "x")}', {}, 'x'],
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
  ['${tag_suffix[1].upcase}-${tag_parts[0].split("p").first}-${tag_parts[9].to_s}', {}, 'LOG-a-'],
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
    'deleted fields stay in the record, but later values do not see them',
    '<record>\n  first ${record["a"]}\n  found ${record.delete("a")}\n  last ${record["a"]}\n</record>',
    { a: 1 },
    { a: 1, first: 1, found: 1, last: null },
  ],
  [
    'deleted members are gone',
    'remove_keys gone\n<record>\n  first ${record["a"]["b"]}\n  gone ${record["a"].delete("b")}\n</record>',
    { a: { b: 1, c: 2 } },
    { a: { c: 2 }, first: 1 },
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

test.each<[value: string, expected: unknown]>([
  ['${record["a"]}', { b: 5 }],
  ['${record["a"]["b"]}', null],
  ["${record['a']}", null],
  ['${record["c"]}', 'x'],
  ['${record["c"].upcase}', null],
  ['x-${record["a"]["b"]}-${record["c"]}', 'x--x'],
  ['${tag}-${tag_parts[1]}', 'app.log-log'],
  ['${ tag }', null],
  ['${record["c"] || "none"}', null],
])('without enable_ruby, %s is %j', async (value, expected) => {
  const text = filter(`<record>\n  found ${value}\n</record>`).replace('  enable_ruby true\n', '')
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  const hasUnknown = expected === null || value.startsWith('x-')
  expect(gaps.map(({ isReplaced, line }) => ({ isReplaced, line }))).toEqual(
    hasUnknown ? [{ isReplaced: true, line: 12 }] : [],
  )
  withTest(
    document,
    resource,
    { message: '{"a":{"b":5},"c":"x"}', timestamp: '2026-11-24T10:11:12.25Z' },
    { found: expected },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  '${record["a"].frobnicate}',
  '${record["a"].map { |x| x.frobnicate }}',
  '${record["a"].group_by { |x| x }}',
  '${[record["a"], record.delete("a")]}',
  '${record["a"] = 5}',
  '${while true do end}',
  '${record["a"].gsub(/#{record["b"]}/, "")}',
  '${"%x" % record["a"]}',
  '${"%.9f" % record["a"].to_f}',
  '${"%e" % record["a"].to_f}',
  '${record["a"] =~ /x/}',
  '${eval("1")}',
  '${Time.new.to_i}',
  '${record["a"].start_with?(record["b"])}',
  '${record["a"][0..record["b"]]}',
  '${record["a"][0..2000].upcase + record["a"][1..2000]}',
  '${record["a"].match(/x/)}',
  '${time.wday}',
  '${record[:a]}',
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
