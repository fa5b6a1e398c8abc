// All functions of the language, one per line. There is no other list.

import type { FunctionDeclaration } from './function.ts'
import { abs } from './functions/abs.ts'
import { aggregateVectorMetrics } from './functions/aggregate_vector_metrics.ts'
import { append } from './functions/append.ts'
import { arrayGuard } from './functions/array.ts'
import { assertFunction } from './functions/assert.ts'
import { assertEq } from './functions/assert_eq.ts'
import { basename } from './functions/basename.ts'
import { boolGuard } from './functions/bool.ts'
import { camelcase } from './functions/camelcase.ts'
import { ceil } from './functions/ceil.ts'
import { chunks } from './functions/chunks.ts'
import { communityId } from './functions/community_id.ts'
import { compact } from './functions/compact.ts'
import { contains } from './functions/contains.ts'
import { containsAll } from './functions/contains_all.ts'
import { crc } from './functions/crc.ts'
import { decodeBase16 } from './functions/decode_base16.ts'
import { decodeBase64 } from './functions/decode_base64.ts'
import { decodeCharset } from './functions/decode_charset.ts'
import { decodeGzip } from './functions/decode_gzip.ts'
import { decodeLz4 } from './functions/decode_lz4.ts'
import { decodeMimeQ } from './functions/decode_mime_q.ts'
import { decodePercent } from './functions/decode_percent.ts'
import { decodePunycode } from './functions/decode_punycode.ts'
import { decodeSnappy } from './functions/decode_snappy.ts'
import { decodeZlib } from './functions/decode_zlib.ts'
import { decodeZstd } from './functions/decode_zstd.ts'
import { decrypt } from './functions/decrypt.ts'
import { decryptIp } from './functions/decrypt_ip.ts'
import { del } from './functions/del.ts'
import { dirname } from './functions/dirname.ts'
import { dnsLookup } from './functions/dns_lookup.ts'
import { downcase } from './functions/downcase.ts'
import { encodeBase16 } from './functions/encode_base16.ts'
import { encodeBase64 } from './functions/encode_base64.ts'
import { encodeCharsetFunction } from './functions/encode_charset.ts'
import { encodeCsv } from './functions/encode_csv.ts'
import { encodeGzip } from './functions/encode_gzip.ts'
import { encodeJson } from './functions/encode_json.ts'
import { encodeKeyValue } from './functions/encode_key_value.ts'
import { encodeLogfmt } from './functions/encode_logfmt.ts'
import { encodeLz4 } from './functions/encode_lz4.ts'
import { encodePercent } from './functions/encode_percent.ts'
import { encodeProto } from './functions/encode_proto.ts'
import { encodePunycode } from './functions/encode_punycode.ts'
import { encodeSnappy } from './functions/encode_snappy.ts'
import { encodeZlib } from './functions/encode_zlib.ts'
import { encodeZstd } from './functions/encode_zstd.ts'
import { encrypt } from './functions/encrypt.ts'
import { encryptIp } from './functions/encrypt_ip.ts'
import { endsWith } from './functions/ends_with.ts'
import { exists } from './functions/exists.ts'
import { filter } from './functions/filter.ts'
import { find } from './functions/find.ts'
import { findEnrichmentTableRecords } from './functions/find_enrichment_table_records.ts'
import { findVectorMetrics } from './functions/find_vector_metrics.ts'
import { flatten } from './functions/flatten.ts'
import { floatGuard } from './functions/float.ts'
import { floor } from './functions/floor.ts'
import { forEach } from './functions/for_each.ts'
import { formatInt } from './functions/format_int.ts'
import { formatNumber } from './functions/format_number.ts'
import { formatTimestampFunction } from './functions/format_timestamp.ts'
import { fromEntries } from './functions/from_entries.ts'
import { fromUnixTimestamp } from './functions/from_unix_timestamp.ts'
import { get } from './functions/get.ts'
import { getEnrichmentTableRecord } from './functions/get_enrichment_table_record.ts'
import { getEnvVar } from './functions/get_env_var.ts'
import { getHostname } from './functions/get_hostname.ts'
import { getSecret } from './functions/get_secret.ts'
import { getTimezoneName } from './functions/get_timezone_name.ts'
import { getVectorMetric } from './functions/get_vector_metric.ts'
import { haversine } from './functions/haversine.ts'
import { hmac } from './functions/hmac.ts'
import { httpRequest } from './functions/http_request.ts'
import { includes } from './functions/includes.ts'
import { intGuard } from './functions/int.ts'
import { ipAton } from './functions/ip_aton.ts'
import { ipCidrContains } from './functions/ip_cidr_contains.ts'
import { ipNtoa } from './functions/ip_ntoa.ts'
import { ipNtop } from './functions/ip_ntop.ts'
import { ipPton } from './functions/ip_pton.ts'
import { ipSubnet } from './functions/ip_subnet.ts'
import { ipToIpv6 } from './functions/ip_to_ipv6.ts'
import { ipv6ToIpv4 } from './functions/ipv6_to_ipv4.ts'
import { isArray } from './functions/is_array.ts'
import { isBoolean } from './functions/is_boolean.ts'
import { isEmpty } from './functions/is_empty.ts'
import { isFloat } from './functions/is_float.ts'
import { isInteger } from './functions/is_integer.ts'
import { isIpv4 } from './functions/is_ipv4.ts'
import { isIpv6 } from './functions/is_ipv6.ts'
import { isJson } from './functions/is_json.ts'
import { isNull } from './functions/is_null.ts'
import { isNullish } from './functions/is_nullish.ts'
import { isObject } from './functions/is_object.ts'
import { isRegex } from './functions/is_regex.ts'
import { isString } from './functions/is_string.ts'
import { isTimestamp } from './functions/is_timestamp.ts'
import { join } from './functions/join.ts'
import { kebabcase } from './functions/kebabcase.ts'
import { keys } from './functions/keys.ts'
import { length } from './functions/length.ts'
import { log } from './functions/log.ts'
import { mapKeys } from './functions/map_keys.ts'
import { mapValues } from './functions/map_values.ts'
import { matchFunction } from './functions/match.ts'
import { matchAny } from './functions/match_any.ts'
import { matchArray } from './functions/match_array.ts'
import { matchDatadogQuery } from './functions/match_datadog_query.ts'
import { md5 } from './functions/md5.ts'
import { merge } from './functions/merge.ts'
import { mod } from './functions/mod.ts'
import { now } from './functions/now.ts'
import { objectGuard } from './functions/object.ts'
import { objectFromArray } from './functions/object_from_array.ts'
import { parseApacheLog } from './functions/parse_apache_log.ts'
import { parseAwsAlbLog } from './functions/parse_aws_alb_log.ts'
import { parseAwsCloudwatchLogSubscriptionMessage } from './functions/parse_aws_cloudwatch_log_subscription_message.ts'
import { parseAwsVpcFlowLog } from './functions/parse_aws_vpc_flow_log.ts'
import { parseBytes } from './functions/parse_bytes.ts'
import { parseCborFunction } from './functions/parse_cbor.ts'
import { parseCef } from './functions/parse_cef.ts'
import { parseCommonLogFunction } from './functions/parse_common_log.ts'
import { parseCsvFunction } from './functions/parse_csv.ts'
import { parseDnstapFunction } from './functions/parse_dnstap.ts'
import { parseDuration } from './functions/parse_duration.ts'
import { parseEtld } from './functions/parse_etld.ts'
import { parseFloatFunction } from './functions/parse_float.ts'
import { parseGlog } from './functions/parse_glog.ts'
import { parseGrok } from './functions/parse_grok.ts'
import { parseGroks } from './functions/parse_groks.ts'
import { parseInfluxdb } from './functions/parse_influxdb.ts'
import { parseIntFunction } from './functions/parse_int.ts'
import { parseJsonFunction } from './functions/parse_json.ts'
import { parseKeyValueFunction } from './functions/parse_key_value.ts'
import { parseKlog } from './functions/parse_klog.ts'
import { parseLinuxAuthorization } from './functions/parse_linux_authorization.ts'
import { parseLogfmtFunction } from './functions/parse_logfmt.ts'
import { parseNginxLogFunction } from './functions/parse_nginx_log.ts'
import { parseProto } from './functions/parse_proto.ts'
import { parseQueryString } from './functions/parse_query_string.ts'
import { parseRegex } from './functions/parse_regex.ts'
import { parseRegexAll } from './functions/parse_regex_all.ts'
import { parseRubyHashFunction } from './functions/parse_ruby_hash.ts'
import { parseSyslogFunction } from './functions/parse_syslog.ts'
import { parseTimestampFunction } from './functions/parse_timestamp.ts'
import { parseTokens } from './functions/parse_tokens.ts'
import { parseUrl } from './functions/parse_url.ts'
import { parseUserAgent } from './functions/parse_user_agent.ts'
import { parseXmlFunction } from './functions/parse_xml.ts'
import { parseYamlFunction } from './functions/parse_yaml.ts'
import { pascalcase } from './functions/pascalcase.ts'
import { pop } from './functions/pop.ts'
import { push } from './functions/push.ts'
import { randomBool } from './functions/random_bool.ts'
import { randomBytesFunction } from './functions/random_bytes.ts'
import { randomFloat } from './functions/random_float.ts'
import { randomIntFunction } from './functions/random_int.ts'
import { redact } from './functions/redact.ts'
import { remove } from './functions/remove.ts'
import { removeSecret } from './functions/remove_secret.ts'
import { replace } from './functions/replace.ts'
import { replaceWith } from './functions/replace_with.ts'
import { reverseDns } from './functions/reverse_dns.ts'
import { round } from './functions/round.ts'
import { screamingsnakecase } from './functions/screamingsnakecase.ts'
import { seahash } from './functions/seahash.ts'
import { set } from './functions/set.ts'
import { setSecret } from './functions/set_secret.ts'
import { setSemanticMeaning } from './functions/set_semantic_meaning.ts'
import { sha1 } from './functions/sha1.ts'
import { sha2 } from './functions/sha2.ts'
import { sha3 } from './functions/sha3.ts'
import { shannonEntropy } from './functions/shannon_entropy.ts'
import { sieve } from './functions/sieve.ts'
import { slice } from './functions/slice.ts'
import { snakecase } from './functions/snakecase.ts'
import { split } from './functions/split.ts'
import { splitPath } from './functions/split_path.ts'
import { startsWith } from './functions/starts_with.ts'
import { stringGuard } from './functions/string.ts'
import { stripAnsiEscapeCodes } from './functions/strip_ansi_escape_codes.ts'
import { stripWhitespace } from './functions/strip_whitespace.ts'
import { strlen } from './functions/strlen.ts'
import { tagTypesExternally } from './functions/tag_types_externally.ts'
import { tally } from './functions/tally.ts'
import { tallyValue } from './functions/tally_value.ts'
import { timestampGuard } from './functions/timestamp.ts'
import { toBool } from './functions/to_bool.ts'
import { toEntries } from './functions/to_entries.ts'
import { toFloat } from './functions/to_float.ts'
import { toInt } from './functions/to_int.ts'
import { toRegex } from './functions/to_regex.ts'
import { toStringFunction } from './functions/to_string.ts'
import { toSyslogFacility } from './functions/to_syslog_facility.ts'
import { toSyslogFacilityCode } from './functions/to_syslog_facility_code.ts'
import { toSyslogLevel } from './functions/to_syslog_level.ts'
import { toSyslogSeverity } from './functions/to_syslog_severity.ts'
import { toTimestamp } from './functions/to_timestamp.ts'
import { toUnixTimestamp } from './functions/to_unix_timestamp.ts'
import { truncate } from './functions/truncate.ts'
import { typeDef } from './functions/type_def.ts'
import { unflatten } from './functions/unflatten.ts'
import { unique } from './functions/unique.ts'
import { unnest } from './functions/unnest.ts'
import { upcase } from './functions/upcase.ts'
import { uuidFromFriendlyId } from './functions/uuid_from_friendly_id.ts'
import { uuidV4 } from './functions/uuid_v4.ts'
import { uuidV7 } from './functions/uuid_v7.ts'
import { validateJsonSchema } from './functions/validate_json_schema.ts'
import { values } from './functions/values.ts'
import { xxhash } from './functions/xxhash.ts'
import { zip } from './functions/zip.ts'

export const functions: readonly FunctionDeclaration[] = [
  abs,
  aggregateVectorMetrics,
  append,
  arrayGuard,
  assertFunction,
  assertEq,
  basename,
  boolGuard,
  camelcase,
  ceil,
  chunks,
  communityId,
  compact,
  contains,
  containsAll,
  crc,
  decodeBase16,
  decodeBase64,
  decodeCharset,
  decodeGzip,
  decodeLz4,
  decodeMimeQ,
  decodePercent,
  decodePunycode,
  decodeSnappy,
  decodeZlib,
  decodeZstd,
  decrypt,
  decryptIp,
  del,
  dirname,
  dnsLookup,
  downcase,
  encodeBase16,
  encodeBase64,
  encodeCharsetFunction,
  encodeCsv,
  encodeGzip,
  encodeJson,
  encodeKeyValue,
  encodeLogfmt,
  encodeLz4,
  encodePercent,
  encodeProto,
  encodePunycode,
  encodeSnappy,
  encodeZlib,
  encodeZstd,
  encrypt,
  encryptIp,
  endsWith,
  exists,
  filter,
  find,
  findEnrichmentTableRecords,
  findVectorMetrics,
  flatten,
  floatGuard,
  floor,
  forEach,
  formatInt,
  formatNumber,
  formatTimestampFunction,
  fromEntries,
  fromUnixTimestamp,
  get,
  getEnrichmentTableRecord,
  getEnvVar,
  getHostname,
  getSecret,
  getTimezoneName,
  getVectorMetric,
  haversine,
  hmac,
  httpRequest,
  includes,
  intGuard,
  ipAton,
  ipCidrContains,
  ipNtoa,
  ipNtop,
  ipPton,
  ipSubnet,
  ipToIpv6,
  ipv6ToIpv4,
  isArray,
  isBoolean,
  isEmpty,
  isFloat,
  isInteger,
  isIpv4,
  isIpv6,
  isJson,
  isNull,
  isNullish,
  isObject,
  isRegex,
  isString,
  isTimestamp,
  join,
  kebabcase,
  keys,
  length,
  log,
  mapKeys,
  mapValues,
  matchFunction,
  matchAny,
  matchArray,
  matchDatadogQuery,
  md5,
  merge,
  mod,
  now,
  objectGuard,
  objectFromArray,
  parseApacheLog,
  parseAwsAlbLog,
  parseAwsCloudwatchLogSubscriptionMessage,
  parseAwsVpcFlowLog,
  parseBytes,
  parseCborFunction,
  parseCef,
  parseCommonLogFunction,
  parseCsvFunction,
  parseDnstapFunction,
  parseDuration,
  parseEtld,
  parseFloatFunction,
  parseGlog,
  parseGrok,
  parseGroks,
  parseInfluxdb,
  parseIntFunction,
  parseJsonFunction,
  parseKeyValueFunction,
  parseKlog,
  parseLinuxAuthorization,
  parseLogfmtFunction,
  parseNginxLogFunction,
  parseProto,
  parseQueryString,
  parseRegex,
  parseRegexAll,
  parseRubyHashFunction,
  parseSyslogFunction,
  parseTimestampFunction,
  parseTokens,
  parseUrl,
  parseUserAgent,
  parseXmlFunction,
  parseYamlFunction,
  pascalcase,
  pop,
  push,
  randomBool,
  randomBytesFunction,
  randomFloat,
  randomIntFunction,
  redact,
  remove,
  removeSecret,
  replace,
  replaceWith,
  reverseDns,
  round,
  screamingsnakecase,
  seahash,
  set,
  setSecret,
  setSemanticMeaning,
  sha1,
  sha2,
  sha3,
  shannonEntropy,
  sieve,
  slice,
  snakecase,
  split,
  splitPath,
  startsWith,
  stringGuard,
  stripAnsiEscapeCodes,
  stripWhitespace,
  strlen,
  tagTypesExternally,
  tally,
  tallyValue,
  timestampGuard,
  toBool,
  toEntries,
  toFloat,
  toInt,
  toRegex,
  toStringFunction,
  toSyslogFacility,
  toSyslogFacilityCode,
  toSyslogLevel,
  toSyslogSeverity,
  toTimestamp,
  toUnixTimestamp,
  truncate,
  typeDef,
  unflatten,
  unique,
  unnest,
  upcase,
  uuidFromFriendlyId,
  uuidV4,
  uuidV7,
  validateJsonSchema,
  values,
  xxhash,
  zip,
]

const byName = new Map(functions.map((declaration) => [declaration.name, declaration]))

export function findFunction(name: string): FunctionDeclaration | undefined {
  return byName.get(name)
}
