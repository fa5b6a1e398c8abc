// Reads topics with the broker's own client, and prints one line of JSON per message.
// Arguments: address, CA file, token file, number of messages to wait for, topics; `avro:TOPIC` is decoded by its schema.
// Ends when that many have arrived and no more follow for two seconds, or when none arrives for half a minute.
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.impl.JavaStringHash;

public class PulsarRead {
  public static void main(String[] a) throws Exception {
    int wanted = Integer.parseInt(a[3]);
    List<Consumer<?>> consumers = new ArrayList<>();
    try (PulsarClient c = PulsarClient.builder().serviceUrl(a[0]).tlsTrustCertsFilePath(a[1])
        .authentication(AuthenticationFactory.token(Files.readString(Path.of(a[2])).trim())).build()) {
      for (int i = 4; i < a.length; i++) {
        boolean avro = a[i].startsWith("avro:");
        Schema<?> schema = avro ? Schema.AUTO_CONSUME() : Schema.BYTES;
        consumers.add(c.newConsumer(schema).topic(avro ? a[i].substring(5) : a[i]).subscriptionName("read-" + System.nanoTime())
            .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe());
      }
      ObjectMapper json = new ObjectMapper();
      StringBuilder out = new StringBuilder();
      int count = 0;
      long last = System.currentTimeMillis();
      while (System.currentTimeMillis() - last < (count >= wanted ? 2_000 : 30_000)) {
        for (Consumer<?> consumer : consumers) {
          Message<?> m;
          while ((m = consumer.receive(20, TimeUnit.MILLISECONDS)) != null) {
            count++;
            last = System.currentTimeMillis();
            Map<String, Object> o = new LinkedHashMap<>();
            o.put("topic", m.getTopicName());
            o.put("key", m.getKey());
            o.put("hash", m.getKey() == null ? null : JavaStringHash.getInstance().makeHash(m.getKey()));
            o.put("properties", m.getProperties());
            o.put("eventTime", m.getEventTime());
            o.put("producer", m.getProducerName());
            Object value = m.getValue();
            if (value instanceof byte[] bytes) o.put("value", Base64.getEncoder().encodeToString(bytes));
            else {
              Map<String, Object> fields = new LinkedHashMap<>();
              GenericRecord record = (GenericRecord) value;
              for (var field : record.getFields()) fields.put(field.getName(), String.valueOf(record.getField(field)));
              o.put("record", fields);
            }
            out.append(json.writeValueAsString(o)).append('\n');
          }
        }
      }
      System.out.print(out);
    }
  }
}
